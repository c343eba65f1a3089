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
    nb::object dtype = attribute("numpy", "dtype");
    nb::object empty = attribute("numpy", "empty");
    nb::object copyto = attribute("numpy", "copyto");
};

/// What plain arrays do without: importing it takes half a millisecond of a model's first run.
struct Conversions {
    nb::object coerce = attribute("headrace._arrays", "coerce");
    nb::object unpack = attribute("headrace._arrays", "unpack_nibbles");
    nb::object shares_memory = attribute("headrace._arrays", "shares_memory");
    nb::object target = attribute("headrace._arrays", "target");
};

Cached& cached() {
    static Cached* instance = new Cached;  // never destroyed: the interpreter may be gone by then
    return *instance;
}

Conversions& conversions() {
    static Conversions* instance = new Conversions;
    return *instance;
}

/// "f4", "?": what NumPy calls a type of its own; "" for another's.
std::string numpy_code(DType type) {
    if (type == DType::boolean) return "?";
    const bool is_other = bits_of(type) < 8 || type == DType::bf16;
    return is_other ? "" : name_of(type).front() + std::to_string(bits_of(type) / 8);
}

nb::tuple extents(const std::vector<std::int64_t>& shape) {
    nb::list list;
    for (std::int64_t d : shape) list.append(d);
    return nb::tuple(list);
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
    if (slot.is_valid()) return slot;
    const std::string code = numpy_code(type);
    return slot = code.empty() ? attribute("headrace._arrays", "dtype_of")(std::string(name_of(type)))
                               : cached().dtype(code);
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

ArrayReader::ArrayReader(nb::handle object, DType type, const char* what) : type_(type) {
    if (carrier(type) == type && read_dense(object)) {
        writable_ = can_change(object);
        return;
    }
    const nb::tuple coerced =
        nb::cast<nb::tuple>(conversions().coerce(object, std::string(name_of(type)), what));
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
    const std::vector<std::int64_t> packed{static_cast<std::int64_t>(bytes_of(type_, elements_))};
    array_ = cached().empty(extents(is_nibble(type_) ? packed : shape_), numpy_dtype(carrier(type_)));
    data_ = nb::cast<nb::ndarray<nb::device::cpu>>(array_).data();
}

ArrayWriter::ArrayWriter(DType type, const std::vector<std::int64_t>& shape) : type_(type), shape_(shape) {
    for (std::int64_t d : shape_) elements_ *= d;
    allocate();
}

bool ArrayWriter::fits(const nb::ndarray<nb::device::cpu, nb::c_contig>& array) const {
    if (!matches(array.dtype(), type_) || array.ndim() != shape_.size()) return false;
    for (std::size_t i = 0; i < shape_.size(); ++i)
        if (array.shape(i) != static_cast<std::size_t>(shape_[i])) return false;
    return true;
}

ArrayWriter::ArrayWriter(nb::handle into, DType type, const std::vector<std::int64_t>& shape,
                         const char* name)
    : type_(type), shape_(shape), given_(nb::borrow(into)), name_(name) {
    for (std::int64_t d : shape_) elements_ *= d;
    nb::ndarray<nb::device::cpu, nb::c_contig> array;
    if (carrier(type) == type && nb::try_cast(into, array, false) && fits(array)) {
        array_ = nb::borrow(into);
        data_ = array.data();
        dense_ = std::move(array);
        return;
    }
    target_ = conversions().target(into, std::string(name_of(type)), extents(shape_), name_);
    allocate();
}

nb::object ArrayWriter::finish() {
    nb::object result = array_;
    if (is_nibble(type_))
        result = conversions().unpack(array_, extents(shape_), std::string(name_of(type_)));
    else if (carrier(type_) != type_)
        result = array_.attr("view")(numpy_dtype(type_));
    if (!target_.is_valid()) return result;
    cached().copyto(target_, result, nb::arg("casting") = "same_kind");
    return given_;
}

void check_apart(std::span<const ArrayWriter> writers) {
    for (std::size_t i = 0; i < writers.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const nb::object &a = writers[i].target(), &b = writers[j].target();
            if (!a.is_valid() && !b.is_valid()) continue;
            if (nb::cast<bool>(conversions().shares_memory(a.is_valid() ? a : writers[i].array(),
                                                           b.is_valid() ? b : writers[j].array())))
                throw nb::value_error(("output '" + writers[i].name() + "' overlaps the memory of output '" +
                                       writers[j].name() + "'")
                                          .c_str());
        }
}

}  // namespace headrace::python
