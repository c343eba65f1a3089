#include "headrace/onnx.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "arrays.h"
#include "bindings.h"
#include "graph.h"

/// ONNX models as the C++ library reads them.
namespace headrace::python {
namespace {

namespace nb = nanobind;

[[noreturn]] void refuse_dimension(const std::string& name, nb::handle value, const char* wanted) {
    throw nb::value_error(
        ("dimensions['" + name + "'] is " + nb::cast<std::string>(nb::repr(value)) + "; it must be " + wanted)
            .c_str());
}

bool is_list(nb::handle value) { return nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value); }

/// An integer of Python's or NumPy's that is no truth value.
std::int64_t to_size(const std::string& name, nb::handle value) {
    std::int64_t size = -1;
    if (!PyBool_Check(value.ptr()) && PyIndex_Check(value.ptr()))
        size = PyLong_AsLongLong(nb::steal(PyNumber_Index(value.ptr())).ptr());
    PyErr_Clear();
    if (size < 0) refuse_dimension(name, value, "a number of at least 0");
    return size;
}

OnnxShape to_shape(const std::string& name, nb::handle list) {
    OnnxShape shape;
    for (const nb::handle extent : list) {
        if (nb::isinstance<nb::str>(extent))
            shape.emplace_back(nb::cast<std::string>(extent));
        else
            shape.emplace_back(to_size(name, extent));
    }
    return shape;
}

OnnxForm to_form(const std::string& name, nb::handle value) {
    if (value.is_none()) return std::monostate{};
    std::size_t lists = 0, count = 0;
    for (const nb::handle part : value) {
        lists += is_list(part) ? 1 : 0;
        ++count;
    }
    if (lists == 0) return to_shape(name, value);
    if (lists < count) refuse_dimension(name, value, "one shape, or a list of shapes");
    std::vector<OnnxShape> shapes;
    for (const nb::handle part : value) shapes.push_back(to_shape(name, part));
    return shapes;
}

/// Numbers of dimensions; lists and None are forms of inputs.
OnnxOptions onnx_options(const nb::dict& dimensions) {
    OnnxOptions options;
    for (const auto& [name, value] : dimensions) {
        const auto key = nb::cast<std::string>(nb::str(name));
        if (value.is_none() || is_list(value))
            options.forms[key] = to_form(key, value);
        else
            options.dimensions[key] = to_size(key, value);
    }
    return options;
}

/// Bytes, or the path of a file.
std::shared_ptr<OnnxModel> open_onnx(nb::handle source) {
    if (nb::isinstance<nb::bytes>(source)) {
        const auto bytes = nb::borrow<nb::bytes>(source);
        auto owner = keep_alive(bytes);
        const std::span content(static_cast<const std::byte*>(bytes.data()), bytes.size());
        const nb::gil_scoped_release others_run;
        return OnnxModel::open(content, std::move(owner));
    }
    if (PyObject_CheckBuffer(source.ptr())) return open_onnx(nb::bytes(source));
    const auto path = nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(source));
    const nb::gil_scoped_release others_run;
    return OnnxModel::open(path);
}

using Read = std::tuple<SharedGraph, std::vector<OnnxOutput>, std::map<std::string, std::string>>;

Read read_onnx(OnnxModel& model, const nb::dict& dimensions) {
    const OnnxOptions options = onnx_options(dimensions);
    const nb::gil_scoped_release others_run;
    OnnxReading reading = model.read(options);
    return {SharedGraph{std::move(reading.graph)}, std::move(reading.outputs), std::move(reading.declared)};
}

SharedGraph load_onnx(nb::handle source, const nb::dict& dimensions) {
    return std::get<0>(read_onnx(*open_onnx(source), dimensions));
}

std::vector<std::tuple<std::string, std::string, std::int64_t>> listed_operators() {
    std::vector<std::tuple<std::string, std::string, std::int64_t>> list;
    for (const OnnxOperator& o : onnx_operators()) list.emplace_back(o.domain, o.name, o.since);
    return list;
}

const char* name_of(OnnxOutput::Kind kind) {
    switch (kind) {
        case OnnxOutput::Kind::tensor: return "tensor";
        case OnnxOutput::Kind::sequence: return "sequence";
        case OnnxOutput::Kind::table: return "table";
        case OnnxOutput::Kind::optional: return "optional";
    }
    return "";
}

template <std::string OnnxOutput::*kField>
std::optional<std::string> named(const OnnxOutput& output) {
    const std::string& name = output.*kField;
    return name.empty() ? std::nullopt : std::optional(name);
}

void bind_model(nb::module_& m) {
    nb::class_<OnnxValue>(m, "OnnxValue", "An input or output as an ONNX model declares it.")
        .def_ro("name", &OnnxValue::name)
        .def_ro("kind", &OnnxValue::kind, "\"tensor\", or \"sequence\" or \"optional\" of such.")
        .def_ro("type", &OnnxValue::type, "Of the tensors: \"f32\", \"bool\", \"f8e4m3fn\", ...")
        .def_ro("shape", &OnnxValue::shape,
                "Of the tensors: numbers, and names of open extents, \"x.0\" without one; None where the\n"
                "model says none.")
        .def_ro("element_type", &OnnxValue::element_type,
                "ONNX's number of it, also of those that are not read; 0 where the model says none.")
        .def_ro("dimension_names", &OnnxValue::dimension_names, "As the file has them: \"\" without one.")
        .def_ro("denotations", &OnnxValue::denotations, "Of each extent: \"DATA_BATCH\"; \"\" without one.");
    nb::class_<OnnxMetadata>(m, "OnnxMetadata", "What an ONNX model says of itself.")
        .def_ro("producer", &OnnxMetadata::producer)
        .def_ro("domain", &OnnxMetadata::domain)
        .def_ro("description", &OnnxMetadata::description)
        .def_ro("graph_name", &OnnxMetadata::graph_name)
        .def_ro("graph_description", &OnnxMetadata::graph_description)
        .def_ro("version", &OnnxMetadata::version)
        .def_ro("properties", &OnnxMetadata::properties);
    nb::class_<OnnxOutput>(m, "OnnxOutput", "How a model's output is put together from its graph's.")
        .def_ro("name", &OnnxOutput::name)
        .def_prop_ro(
            "kind", [](const OnnxOutput& o) { return name_of(o.kind); },
            "\"tensor\"; \"sequence\" of parts; \"table\": a sequence whose length a run tells; or\n"
            "\"optional\" of one part, or none where it is always empty.")
        .def_prop_ro("tensor", &named<&OnnxOutput::tensor>,
                     "The graph's output; of a table that with all elements, one tensor after another.")
        .def_prop_ro("shapes", &named<&OnnxOutput::shapes>, "Of a table: the graph's [length, dimensions].")
        .def_prop_ro("ranks", &named<&OnnxOutput::ranks>,
                     "Of a table: how many dimensions each tensor has; None where all have as many.")
        .def_prop_ro("is_there", &named<&OnnxOutput::is_there>,
                     "Of an optional: the graph's truth value; None where it always is.")
        .def_ro("parts", &OnnxOutput::parts);
    nb::class_<OnnxModel>(m, "OnnxModel", "An ONNX model that is open. Threads may use it at the same time.")
        .def_prop_ro("inputs", &OnnxModel::inputs, "What a caller gives: OnnxValues.")
        .def_prop_ro("outputs", &OnnxModel::outputs, "OnnxValues.")
        .def_prop_ro("overridable_initializers", &OnnxModel::overridable_initializers,
                     "Initializers that are listed as inputs, whose values are fixed here: OnnxValues.")
        .def_prop_ro("metadata", &OnnxModel::metadata)
        .def_prop_ro("operator_sets", &OnnxModel::operator_sets, "Versions by domain; \"\" is ai.onnx.")
        .def(
            "read", &read_onnx, nb::arg("dimensions") = nb::dict(),
            nb::sig("def read(self, dimensions: collections.abc.Mapping[str, int | list | None] = {}) -> "
                    "tuple[Graph, list[OnnxOutput], dict[str, str]]"),
            "The graph, how the model's outputs are put together from the graph's, and the types of those\n"
            "whose elements the graph gives in another one: {\"y\": \"bf16\"}. Errors: load_onnx()'s.\n"
            "dimensions: numbers of named dimensions, whole shapes of inputs, and of those that are\n"
            "sequences their tensors' shapes: {\"n\": 1, \"x\": [1, \"n\"], \"list\": [[2, \"n\"], [2, 3]],\n"
            "\"empty\": None}.");
}

}  // namespace

void bind_onnx(nb::module_& m) {
    bind_model(m);
    m.def("open_onnx", &open_onnx, nb::arg("source"),
          nb::sig("def open_onnx(source: str | os.PathLike | bytes) -> OnnxModel"),
          "An ONNX model's file or bytes. Errors: OSError; ValueError for what is no model.");
    m.def("load_onnx", &load_onnx, nb::arg("source"), nb::arg("dimensions") = nb::dict(),
          nb::sig("def load_onnx(source: str | os.PathLike | bytes, dimensions: "
                  "collections.abc.Mapping[str, int | list | None] = {}) -> Graph"),
          "Reads an ONNX model without the package onnx. Errors: OSError; ValueError with the node, its "
          "operator,\n"
          "what is in the way and what to do, also for what this reader lacks.");
    m.def("onnx_operators", &listed_operators, nb::sig("def onnx_operators() -> list[tuple[str, str, int]]"),
          "Domain, name and first operator set of each operator that load_onnx() reads.");
}

}  // namespace headrace::python
