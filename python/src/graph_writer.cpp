#include "headrace/graph_writer.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "extent.h"
#include "graph.h"
#include "options.h"

/// Graphs of any ops of the catalog, for the ONNX and ExecuTorch doors: not part of the WebNN API.
namespace headrace::python {
namespace {

namespace nb = nanobind;
using Bytes = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

/// By the catalog's short names: "f32", "i64", "bool".
DType dtype_named(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i)
        if (name_of(static_cast<DType>(i)) == name) return static_cast<DType>(i);
    throw nb::value_error(("unknown dtype '" + std::string(name) + "'").c_str());
}

std::span<const std::byte> bytes_of(const Bytes& array) {
    return {static_cast<const std::byte*>(array.data()), array.nbytes()};
}

Options options_of(nb::dict attributes) {
    Options options;
    for (const auto& [name, value] : attributes) {
        auto key = nb::cast<std::string>(name);
        SharedGraph body;
        if (nb::try_cast(value, body)) {
            options.emplace_back(std::move(key), body.graph);
            continue;
        }
        // Text is text here, except where it names a dtype after "dtype:".
        if (nb::isinstance<nb::str>(value)) {
            auto text = nb::cast<std::string>(value);
            if (text.starts_with("dtype:"))
                options.emplace_back(std::move(key), dtype_named(text.substr(6)));
            else
                options.emplace_back(std::move(key), std::move(text));
        } else if (has_extents(value)) {
            options.emplace_back(std::move(key), to_extents(value));
        } else {
            options.emplace_back(std::move(key), to_option(value, false));
        }
    }
    return options;
}

GraphWriter::Value add_constant(GraphWriter& w, std::string_view dtype, std::vector<std::int64_t> shape,
                                const Bytes& bytes, const std::string& key, const std::string& format) {
    const auto owner = std::make_shared<Bytes>(bytes);
    return w.constant(dtype_named(dtype), shape, bytes_of(bytes), owner, key, format);
}

/// {"q8_0": (elements, bytes) of a block, ...}
nb::dict block_format_dict() {
    nb::dict formats;
    for (const BlockFormatInfo& f : block_formats())
        formats[std::string(f.name).c_str()] = nb::make_tuple(f.elements, f.bytes);
    return formats;
}

using Rows = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu, nb::c_contig>;

nb::bytes quantized(const std::string& format, const Rows& rows) {
    std::vector<std::byte> bytes;
    {
        const nb::gil_scoped_release others_run;
        bytes = quantize_rows(format, {rows.data(), rows.size()}, static_cast<std::int64_t>(rows.shape(1)));
    }
    return nb::bytes(bytes.data(), bytes.size());
}

GraphWriter::Value add_state(GraphWriter& w, const std::string& name, std::string_view dtype,
                             std::vector<std::int64_t> shape, const std::optional<Bytes>& initial,
                             const std::string& key) {
    if (!initial) return w.state(name, dtype_named(dtype), shape, {}, nullptr);
    const auto owner = std::make_shared<Bytes>(*initial);
    return w.state(name, dtype_named(dtype), shape, bytes_of(*initial), owner, key);
}

std::vector<GraphWriter::Value> add_op(GraphWriter& w, std::string_view name, nb::list operands,
                                       nb::dict attributes, const std::string& label) {
    std::vector<GraphWriter::Value> values;
    for (nb::handle item : operands)
        values.push_back(item.is_none() ? GraphWriter::kAbsent : nb::cast<GraphWriter::Value>(item));
    return w.op(name, values, options_of(attributes), label);
}

/// Raises what loading the graph would: the weights' bytes are not looked at.
void check(nb::bytes graph, nb::dict weights) {
    const std::span<const std::byte> bytes{static_cast<const std::byte*>(graph.data()), graph.size()};
    const auto aligned = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    graph_from_memory(*aligned, aligned, [&](const std::string& key) -> NamedWeight {
        if (!weights.contains(key.c_str()))
            throw Exception(Code::io, "there are no weights named '" + key + "'");
        const auto owner = std::make_shared<Bytes>(nb::cast<Bytes>(weights[key.c_str()]));
        return {bytes_of(*owner), owner};
    });
}

}  // namespace

void bind_graph_writer(nb::module_& m) {
    nb::class_<GraphWriter>(m, "GraphWriter", "Builds a graph of any ops of the catalog; values are numbers.")
        .def(nb::init<>())
        .def(
            "input",
            [](GraphWriter& w, const std::string& name, std::string_view dtype, nb::object shape) {
                return w.input(name, dtype_named(dtype), to_extents(shape));
            },
            nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
            "A run-time operand; the shape is of integers and Extents.")
        .def("constant", &add_constant, nb::arg("dtype"), nb::arg("shape"), nb::arg("data"),
             nb::arg("key") = "", nb::arg("format") = "",
             "Bytes that are not copied; with a key the finished graph only names them, and with a block "
             "format they are what quantize_rows() made.")
        .def("state", &add_state, nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
             nb::arg("initial").none() = nb::none(), nb::arg("key") = "")
        .def("op", &add_op, nb::arg("name"), nb::arg("operands"), nb::arg("attributes") = nb::dict(),
             nb::arg("label") = "", "Appends a node and returns its results; None leaves an operand out.")
        .def("dtype",
             [](const GraphWriter& w, GraphWriter::Value v) { return std::string(name_of(w.dtype(v))); })
        .def("is_blocks", &GraphWriter::is_blocks, "Whether a constant is stored in a block format.")
        .def("shape", [](const GraphWriter& w, GraphWriter::Value v) { return to_list(w.shape(v)); })
        .def("output", &GraphWriter::output, nb::arg("name"), nb::arg("value"))
        .def(
            "finish", [](GraphWriter& w) { return SharedGraph{w.finish()}; },
            "Hands the graph over, which must have an output.");
    m.def("check_graph", &check, nb::arg("graph"), nb::arg("weights"),
          "Raises where the bytes of a finished graph could not be loaded with weights of these sizes.");
    m.def("block_formats", &block_format_dict,
          "ggml's formats of quantised weights, each with the elements and the bytes of a block.");
    m.def("quantize_rows", &quantized, nb::arg("format"), nb::arg("rows"),
          "float32 [rows, columns] in a block format, by ggml's quantiser.");
}

}  // namespace headrace::python
