#include "run_tensor.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "arrays.h"
#include "bindings.h"

/// headrace.Tensor: what runs read and write where it lies.
namespace headrace::python {
namespace {

DType dtype_of_array(nb::handle array) {
    const auto name = nb::cast<std::string>(array.attr("dtype").attr("name"));
    const auto shorter = nb::module_::import_("headrace._arrays").attr("short_name")(name);
    const auto dtype = dtype_from_name(nb::cast<std::string>(shorter));
    if (!dtype) throw nb::value_error(("Tensor: no tensor has elements of " + name).c_str());
    return *dtype;
}

void write_run_tensor(Tensor& self, nb::handle data) {
    const ArrayReader reader(data, self.dtype(), "Tensor.write");
    if (reader.shape() != self.shape())
        throw nb::value_error(("Tensor.write: the array has shape " + shape_text(reader.shape()) +
                               ", the tensor " + shape_text(self.shape()))
                                  .c_str());
    const nb::gil_scoped_release others_run;
    self.write(reader.data(), reader.bytes());
}

Tensor tensor_of_array(nb::handle data) {
    const nb::object array = nb::module_::import_("headrace._arrays").attr("as_array")(data);
    const DType dtype = dtype_of_array(array);
    const ArrayReader reader(array, dtype, "Tensor");
    Tensor made(dtype, reader.shape());
    const nb::gil_scoped_release others_run;
    made.write(reader.data(), reader.bytes());
    return made;
}

nb::object read_run_tensor(const Tensor& self) {
    ArrayWriter writer(self.dtype(), self.shape());
    const OutputView view = writer.view();
    {
        const nb::gil_scoped_release others_run;
        self.read(view.data, view.bytes);
    }
    return writer.finish();
}

nb::object as_numpy(const Tensor& self, nb::object dtype, nb::object copy) {
    if (!copy.is_none() && !nb::cast<bool>(copy))
        throw nb::value_error("a Tensor is no array: numpy() copies its elements");
    const nb::object array = read_run_tensor(self);
    return dtype.is_none() ? array : array.attr("astype")(dtype);
}

nb::tuple extents_of(const Tensor& self) {
    nb::list list;
    for (const std::int64_t extent : self.shape()) list.append(extent);
    return nb::tuple(list);
}

std::string type_of(DType dtype, const std::vector<std::int64_t>& shape) {
    return nb::cast<std::string>(numpy_dtype(dtype).attr("name")) + shape_text(shape);
}

std::string described(const Tensor& self) {
    return "Tensor(" + type_of(self.dtype(), self.shape()) +
           (self.is_on_device() ? ", on a device)" : ", in the host's memory)");
}

}  // namespace

Tensor* find_run_tensor(nb::handle object) {
    // An object that __new__ made without __init__ has no tensor.
    return nb::isinstance<Tensor>(object) && nb::inst_ready(object) ? nb::inst_ptr<Tensor>(object) : nullptr;
}

nb::object output_tensor(nb::handle given, const TensorInfo& info, const std::vector<std::int64_t>& shape) {
    if (given.is(nb::type<Tensor>())) return nb::cast(Tensor(info.dtype, shape));
    const Tensor* tensor = find_run_tensor(given);
    if (!tensor) return {};
    if (tensor->dtype() == info.dtype && tensor->shape() == shape) return nb::borrow(given);
    throw nb::value_error(("output '" + info.name + "' is " + type_of(info.dtype, shape) +
                           ", the tensor for it " + type_of(tensor->dtype(), tensor->shape()))
                              .c_str());
}

void bind_run_tensor(nb::module_& m) {
    nb::class_<Tensor>(
        m, "Tensor",
        "Memory for inputs and outputs of runs that stays where runs leave it: what a run on a "
        "device writes lies\nthere, and the next run there reads it without a copy. Threads may "
        "read it at the same time; who writes it is\nalone with it.")
        .def(
            "__init__", [](Tensor* self, nb::object data) { new (self) Tensor(tensor_of_array(data)); },
            nb::arg("data"), nb::sig("def __init__(self, data: numpy.typing.ArrayLike) -> None"),
            "A copy of an array, in the host's memory until a run on a device uses it.")
        .def_prop_ro(
            "dtype", [](const Tensor& self) { return numpy_dtype(self.dtype()); },
            nb::sig("def dtype(self) -> numpy.dtype"))
        .def_prop_ro("shape", &extents_of, nb::sig("def shape(self) -> tuple[int, ...]"))
        .def_prop_ro("nbytes", &Tensor::bytes)
        .def_prop_ro("is_on_device", &Tensor::is_on_device, "Whether its content is on a device now.")
        .def("numpy", &read_run_tensor, nb::sig("def numpy(self) -> numpy.ndarray"), "A copy of the content.")
        .def("write", &write_run_tensor, nb::arg("data"),
             nb::sig("def write(self, data: numpy.typing.ArrayLike) -> None"),
             "Replaces the content; ValueError when the shape is another.")
        .def("__array__", &as_numpy, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
             nb::sig("def __array__(self, dtype: object = None, copy: bool | None = None) -> numpy.ndarray"))
        .def("__repr__", &described);
}

}  // namespace headrace::python
