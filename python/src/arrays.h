#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/headrace.h"

namespace headrace::python {

namespace nb = nanobind;

/// A NumPy dtype object for ours: numpy.dtype("float32"), ml_dtypes.int4, ...
nb::object numpy_dtype(DType type);

/// Keeps a Python object alive for as long as anything reads its bytes, from whichever thread lets go last.
std::shared_ptr<const void> keep_alive(nb::object object);

/// A caller's array as dense bytes of a declared dtype. Dense arrays of that dtype are read where they are;
/// anything else that NumPy can convert is converted; 4-bit elements are packed two to a byte. ValueError for
/// numbers that the dtype does not hold, where it is one of integers; floats may round.
class ArrayReader {
public:
    ArrayReader(nb::handle object, DType type, const char* what);
    const void* data() const { return data_; }
    std::size_t bytes() const { return bytes_of(type_, elements_); }
    const std::vector<std::int64_t>& shape() const { return shape_; }
    bool writable() const { return writable_; }
    /// What keeps the bytes alive.
    const nb::object& owner() const { return owner_; }

private:
    bool read_dense(nb::handle object);

    DType type_;
    nb::object owner_;
    nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig> array_;  ///< keeps what an exporter made for us
    const void* data_ = nullptr;
    std::int64_t elements_ = 1;
    std::vector<std::int64_t> shape_;
    bool writable_ = false;
};

/// A new NumPy array and its memory; 4-bit results are unpacked by finish().
class ArrayWriter {
public:
    ArrayWriter(DType type, const std::vector<std::int64_t>& shape);
    /// Writes into the caller's array: where it lies if it is dense and of this type, else by a copy at the
    /// end. ValueError names the output when the array cannot take the result.
    ArrayWriter(nb::handle into, DType type, const std::vector<std::int64_t>& shape, const char* name);
    OutputView view() const { return {data_, bytes_of(type_, elements_)}; }
    nb::object finish();
    /// The array that finish() copies the result to; invalid where there is none.
    const nb::object& target() const { return target_; }
    /// The caller's array, or a new one.
    const nb::object& array() const { return given_.is_valid() ? given_ : array_; }
    const std::string& name() const { return name_; }

private:
    void allocate();
    bool fits(const nb::ndarray<nb::device::cpu, nb::c_contig>& array) const;

    DType type_;
    std::vector<std::int64_t> shape_;
    std::int64_t elements_ = 1;
    nb::object array_, target_, given_;
    std::string name_;  ///< of the output, where the caller gave an array
    nb::ndarray<nb::device::cpu, nb::c_contig> dense_;
    void* data_ = nullptr;
};

/// ValueError when two of the callers' arrays share memory of which one is copied to at the end; the others'
/// overlaps are found by the run.
void check_apart(std::span<const ArrayWriter> writers);

}  // namespace headrace::python
