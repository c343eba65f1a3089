#include "arrays.h"

#include "bindings.h"

#include <nanobind/stl/string.h>

#include <string>

namespace headrace::python {
namespace {

/// Looked up once; the interpreter owns them until it ends.
nb::object attribute(const char* module, const char* name) { return nb::module_::import_(module).attr(name); }

struct Cached {
    nb::object dtypes[kDTypeCount];
    nb::object empty = attribute("numpy", "empty");
    nb::object coerce = attribute("headrace._arrays", "coerce");
    nb::object unpack = attribute("headrace._arrays", "unpack_nibbles");
    nb::object copyto = attribute("numpy", "copyto");
};

Cached& cached() {
    static Cached* instance = new Cached;  // never destroyed: the interpreter may be gone by then
    return *instance;
}

bool is_nibble(DType t) { return bits_of(t) == 4; }

/// What carries elements through the array interfaces that know none of their type: packed bytes, or bits.
DType carrier(DType t) { return is_nibble(t) ? DType::u8 : t == DType::bf16 ? DType::i16 : t; }

bool matches(const nb::dlpack::dtype& given, DType wanted) {
    using nb::dlpack::dtype_code;
    const auto is = [&](dtype_code code, int bits) {
        return given.code == static_cast<std::uint8_t>(code) && given.bits == bits && given.lanes == 1;
    };
    switch (wanted) {
        case DType::f32:
        case DType::f16:
        case DType::f64: return is(dtype_code::Float, bits_of(wanted));
        case DType::i8:
        case DType::i16:
        case DType::i32:
        case DType::i64: return is(dtype_code::Int, bits_of(wanted));
        case DType::u8:
        case DType::u32:
        case DType::u64: return is(dtype_code::UInt, bits_of(wanted));
        case DType::boolean: return is(dtype_code::Bool, 8);
        default: return false;
    }
}

/// True when somebody may write the array's memory: through it, or through an array that it is a view of.
bool can_change(nb::handle array) {
    for (nb::object at = nb::borrow(array); !at.is_none(); at = nb::getattr(at, "base", nb::none())) {
        const nb::object flags = nb::getattr(at, "flags", nb::none());
        if (flags.is_none()) return at.is(array);  // not an array: what NumPy was given, an mmap or bytes
        if (nb::cast<bool>(flags.attr("writeable"))) return true;
    }
    return false;
}

}  // namespace

nb::object numpy_dtype(DType type) {
    nb::object& slot = cached().dtypes[static_cast<int>(type)];
    if (!slot.is_valid()) slot = attribute("headrace._arrays", "dtype_of")(std::string(name_of(type)));
    return slot;
}

std::shared_ptr<const void> keep_alive(nb::object object) {
    return {object.release().ptr(), [](const void* p) {
                nb::gil_scoped_acquire gil;
                Py_DECREF(static_cast<PyObject*>(const_cast<void*>(p)));
            }};
}

bool ArrayReader::read_dense(nb::handle object) {
    nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig> array;
    if (!nb::try_cast(object, array, false)) return false;
    if (!matches(array.dtype(), carrier(type_))) return false;
    data_ = array.data();
    if (shape_.empty())
        for (std::size_t i = 0; i < array.ndim(); ++i) {
            shape_.push_back(static_cast<std::int64_t>(array.shape(i)));
            elements_ *= shape_.back();
        }
    owner_ = nb::borrow(object);
    array_ = std::move(array);
    return true;
}

ArrayReader::ArrayReader(nb::handle object, DType type, const char* what, Conversion conversion)
    : type_(type) {
    if (carrier(type) == type && read_dense(object)) {
        writable_ = can_change(object);
        return;
    }
    const nb::tuple coerced = nb::cast<nb::tuple>(
        cached().coerce(object, std::string(name_of(type)), what, conversion == Conversion::exact));
    for (nb::handle extent : nb::cast<nb::tuple>(coerced[1])) {
        shape_.push_back(nb::cast<std::int64_t>(extent));
        elements_ *= shape_.back();
    }
    const bool scalar = shape_.empty();
    if (!read_dense(coerced[0]))
        throw nb::type_error((std::string(what) + ": NumPy gave no dense array").c_str());
    if (scalar) {
        shape_.clear();
        elements_ = 1;
    }
}

void ArrayWriter::allocate() {
    nb::list extents;
    if (is_nibble(type_))
        extents.append(bytes_of(type_, elements_));
    else
        for (std::int64_t d : shape_) extents.append(d);
    array_ = cached().empty(nb::tuple(extents), numpy_dtype(carrier(type_)));
    data_ = nb::cast<nb::ndarray<nb::device::cpu>>(array_).data();
}

ArrayWriter::ArrayWriter(DType type, const std::vector<std::int64_t>& shape) : type_(type), shape_(shape) {
    for (std::int64_t d : shape_) elements_ *= d;
    allocate();
}

std::string ArrayWriter::shape_message(const char* name,
                                       const nb::ndarray<nb::device::cpu, nb::c_contig>& given) const {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < given.ndim(); ++i) sizes.push_back(static_cast<std::int64_t>(given.shape(i)));
    return std::string("output '") + name + "': the array has shape " + shape_text(sizes) +
           ", the graph gives " + shape_text(shape_);
}

ArrayWriter::ArrayWriter(nb::handle into, DType type, const std::vector<std::int64_t>& shape,
                         const char* name)
    : type_(type), shape_(shape) {
    for (std::int64_t d : shape_) elements_ *= d;
    nb::ndarray<nb::device::cpu, nb::c_contig> array;
    if (carrier(type) == type && nb::try_cast(into, array, false) && matches(array.dtype(), type) &&
        array.ndim() == shape_.size()) {
        bool same = true;
        for (std::size_t i = 0; i < shape_.size(); ++i)
            same = same && array.shape(i) == static_cast<std::size_t>(shape_[i]);
        if (!same) throw nb::value_error(shape_message(name, array).c_str());
        array_ = nb::borrow(into);
        data_ = array.data();
        dense_ = std::move(array);
        return;
    }
    target_ = nb::borrow(into);
    name_ = name;
    allocate();
}

nb::object ArrayWriter::finish() {
    nb::object result = array_;
    if (is_nibble(type_)) {
        nb::list extents;
        for (std::int64_t d : shape_) extents.append(d);
        result = cached().unpack(array_, nb::tuple(extents), std::string(name_of(type_)));
    } else if (carrier(type_) != type_) {
        result = array_.attr("view")(numpy_dtype(type_));
    }
    if (!target_.is_valid()) return result;
    try {
        cached().copyto(target_, result);
    } catch (nb::python_error& error) {
        error.restore();
        nb::chain_error(PyExc_ValueError, "output '%s' cannot take the result", name_.c_str());
        throw nb::python_error();
    }
    return target_;
}

}  // namespace headrace::python
