#include "tensors.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string_view>
#include <utility>

#include "arrays.h"
#include "bindings.h"

namespace headrace::python {

using namespace webnn;

const MLTensor* find_tensor(nb::handle object) {
    const bool is_ready = nb::inst_check(object) && nb::inst_ready(object);  // not by __new__ alone
    if (!is_ready) return nullptr;
    if (nb::isinstance<MLTensor>(object)) return nb::inst_ptr<MLTensor>(object);
    if (nb::isinstance<DeviceTensor>(object)) return &nb::inst_ptr<DeviceTensor>(object)->tensor;
    return nullptr;
}

std::string type_text(DType type, const std::vector<std::int64_t>& shape) {
    return std::string(data_type_name(type)) + shape_text(shape);
}

namespace {

const MLTensor& tensor_of(nb::handle object, const char* call) {
    if (const MLTensor* tensor = find_tensor(object)) return *tensor;
    const auto given = nb::cast<std::string>(object.type().attr("__name__"));
    throw nb::type_error((std::string(call) + ": a " + given + " is no MLTensor").c_str());
}

MLTensor create_constant_tensor(const MLContext& context, nb::object data, nb::object type) {
    const nb::object array = nb::module_::import_("headrace._arrays").attr("as_array")(data);
    const std::string name = type.is_none() ? nb::cast<std::string>(array.attr("dtype").attr("name"))
                                            : nb::cast<std::string>(type);
    const ArrayReader reader(array, parse_data_type(name), "create_constant_tensor");
    return context.createConstantTensor({parse_data_type(name), reader.shape()}, reader.data(),
                                        reader.bytes());
}

void write_tensor(const MLContext& context, nb::handle object, nb::handle data) {
    const MLTensor& tensor = tensor_of(object, "write_tensor");
    const ArrayReader reader(data, tensor.dataType(), "write_tensor");
    if (tensor.writable() && reader.shape() != tensor.shape())
        throw nb::value_error(("write_tensor: Shape mismatch: the array has shape " +
                               shape_text(reader.shape()) + ", the tensor " + shape_text(tensor.shape()))
                                  .c_str());
    const nb::gil_scoped_release unlocked;  // a dispatch may hold the tensor
    context.writeTensor(tensor, reader.data(), reader.bytes());
}

/// What `read` writes, as an array of the tensor's type.
template <class Read>
nb::object read_with(const MLTensor& tensor, Read&& read) {
    ArrayWriter writer(tensor.dataType(), tensor.shape());
    const OutputView view = writer.view();
    {
        const nb::gil_scoped_release unlocked;
        read(view.data, view.bytes);
    }
    return writer.finish();
}

nb::object read_tensor(const MLContext& context, nb::handle object) {
    const MLTensor& tensor = tensor_of(object, "read_tensor");
    return read_with(tensor, [&](void* data, std::size_t bytes) { context.readTensor(tensor, data, bytes); });
}

nb::object read(nb::handle object) {
    const MLTensor& tensor = tensor_of(object, "read");
    return read_with(tensor, [&](void* data, std::size_t bytes) { tensor.read(data, bytes); });
}

MLTensor create_tensor(const MLContext& context, std::vector<std::int64_t> shape, const std::string& type,
                       bool readable, bool writable, bool exportable_to_gpu) {
    return context.createTensor({.dataType = parse_data_type(type),
                                 .shape = std::move(shape),
                                 .readable = readable,
                                 .writable = writable,
                                 .exportableToGPU = exportable_to_gpu});
}

DeviceTensor create_device_tensor(const MLContext& context, const MLGraph& graph,
                                  std::vector<std::int64_t> shape, const std::string& type,
                                  const std::optional<std::string>& device) {
    constexpr std::string_view kElsewhere[] = {"cuda", "directml", "coreml"};
    context.checkGraph("create_device_tensor", graph);
    for (const std::string_view name : kElsewhere)
        if (device == name)
            throw Exception(Code::invalid_state, "create_device_tensor: device '" + *device +
                                                     "' is not available in this build; use 'cpu'");
    if (device.value_or("cpu") != "cpu")
        throw nb::value_error(
            ("create_device_tensor: unknown device '" + *device + "'; known: cpu, cuda, directml, coreml")
                .c_str());
    return {context, create_tensor(context, std::move(shape), type, true, true, false)};
}

std::string repr(const MLTensor& tensor) {
    std::string text = "MLTensor(" + type_text(tensor.dataType(), tensor.shape());
    if (tensor.readable()) text += ", readable";
    if (tensor.writable()) text += ", writable";
    if (tensor.exportableToGPU()) text += ", exportable_to_gpu";
    if (tensor.constant()) text += ", constant";
    if (tensor.destroyed()) text += ", destroyed";
    return text + ")";
}

std::string repr(const DeviceTensor& device) {
    return "MLDeviceTensor(" + type_text(device.tensor.dataType(), device.tensor.shape()) +
           ", device='cpu', backend='ggml'" + (device.tensor.destroyed() ? ", destroyed)" : ")");
}

std::int64_t size(const MLTensor& tensor) {
    std::int64_t elements = 1;
    for (std::int64_t d : tensor.shape()) elements *= d;
    return elements;
}

std::string type_name(const MLTensor& tensor) { return std::string(data_type_name(tensor.dataType())); }

}  // namespace

void bind_tensors(nb::module_& m) {
    nb::class_<MLTensor>(m, "MLTensor", "Typed memory that belongs to a context.")
        .def_prop_ro("data_type", &type_name)
        .def_prop_ro("shape", &MLTensor::shape)
        .def_prop_ro("size", &size, "The number of elements.")
        .def_prop_ro("readable", &MLTensor::readable)
        .def_prop_ro("writable", &MLTensor::writable)
        .def_prop_ro("exportable_to_gpu", &MLTensor::exportableToGPU, "What create_tensor was given.")
        .def("destroy", &MLTensor::destroy, "Frees the memory; RuntimeError the second time.")
        .def("__repr__", nb::overload_cast<const MLTensor&>(&repr));
    nb::class_<DeviceTensor>(
        m, "MLDeviceTensor",
        "Memory that a graph reads or writes in place, made by create_device_tensor; it lies with the CPU.")
        .def_prop_ro("data_type", [](const DeviceTensor& d) { return type_name(d.tensor); })
        .def_prop_ro("shape", [](const DeviceTensor& d) { return d.tensor.shape(); })
        .def_prop_ro(
            "size", [](const DeviceTensor& d) { return size(d.tensor); }, "The number of elements.")
        .def_prop_ro("device", [](const DeviceTensor&) { return "cpu"; })
        .def_prop_ro("backend", [](const DeviceTensor&) { return "ggml"; })
        .def(
            "read", [](nb::handle self) { return read(self); },
            "The content, with the tensor's dtype and shape.")
        .def(
            "write",
            [](nb::handle self, nb::handle data) {
                write_tensor(nb::inst_ptr<DeviceTensor>(self)->context, self, data);
            },
            nb::arg("data"), "Replaces the content; ValueError when the shape is another.")
        .def(
            "destroy", [](DeviceTensor& d) { d.tensor.destroy(); },
            "Frees the memory; RuntimeError the second time.")
        .def("__repr__", nb::overload_cast<const DeviceTensor&>(&repr));
    m.def("read", &read, nb::arg("tensor"), "A copy of a readable tensor's content.");
}

void bind_tensor_calls(nb::class_<MLContext>& context) {
    context
        .def("_create_tensor", &create_tensor, nb::arg("shape"), nb::arg("data_type"), nb::arg("readable"),
             nb::arg("writable"), nb::arg("exportable_to_gpu"))
        .def("create_device_tensor", &create_device_tensor, nb::arg("graph"), nb::arg("shape"),
             nb::arg("data_type"), nb::arg("device") = nb::none(),
             "A tensor where `graph` runs. device: \"cpu\"; RuntimeError for what is not built in, else "
             "ValueError.")
        .def("read_tensor", &read_tensor, nb::arg("tensor"),
             "A copy of the content; RuntimeError unless the tensor is readable.")
        .def("write_tensor", &write_tensor, nb::arg("tensor"), nb::arg("data"),
             "Replaces the content; RuntimeError unless the tensor is writable, ValueError when the shape is "
             "another.")
        .def("create_constant_tensor", &create_constant_tensor, nb::arg("data"),
             nb::arg("data_type").none() = nb::none(),
             "A tensor for MLGraphBuilder.constant, with a copy of the array; nobody can read or write it.");
}

}  // namespace headrace::python
