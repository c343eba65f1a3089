#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "bindings.h"

/// Arrays of other libraries that NumPy cannot take.
namespace headrace::python {
namespace {

namespace nb = nanobind;

/// The elements of a bfloat16 array as uint16 where they lie, in the array's strides; None for other arrays.
nb::object bfloat16_bits(nb::handle object) {
    using nb::dlpack::dtype_code;
    nb::ndarray<nb::ro, nb::device::cpu> array;
    if (!nb::try_cast(object, array, false)) return nb::none();
    const nb::dlpack::dtype type = array.dtype();
    if (type.code != static_cast<std::uint8_t>(dtype_code::Bfloat) || type.bits != 16 || type.lanes != 1)
        return nb::none();
    std::vector<std::size_t> shape;
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < array.ndim(); ++i) {
        shape.push_back(array.shape(i));
        strides.push_back(array.stride(i));
    }
    // The view keeps the DLPack capsule, and that the exporter's memory.
    auto* owner = new nb::ndarray<nb::ro, nb::device::cpu>(array);
    const nb::capsule keeper(
        owner, [](void* p) noexcept { delete static_cast<nb::ndarray<nb::ro, nb::device::cpu>*>(p); });
    return nb::cast(nb::ndarray<nb::numpy, const std::uint16_t>(array.data(), array.ndim(), shape.data(),
                                                                keeper, strides.data()));
}

}  // namespace

void bind_exchange(nb::module_& m) {
    m.def("bfloat16_bits", &bfloat16_bits, nb::arg("array"),
          "The bits of a bfloat16 array as uint16, where they lie; None for arrays of other dtypes.");
}

}  // namespace headrace::python
