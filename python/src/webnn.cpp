#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include "arrays.h"
#include "bindings.h"
#include "headrace/webnn.h"
#include "options.h"
#include "runs.h"
#include "stats.h"
#include "tensors.h"

namespace headrace::python {
namespace {

using namespace webnn;
using Path = std::filesystem::path;

std::string type_text(DType type) { return std::string(data_type_name(type)); }

nb::list shape_list(const std::vector<MLDimension>& shape) {
    nb::list list;
    for (const MLDimension& d : shape) {
        if (d.is_open()) {  // as input() and reshape() take it
            nb::dict dynamic;
            dynamic["name"] = d.str();
            dynamic["maxSize"] = d.most();
            list.append(dynamic);
        } else {
            list.append(*d.number());
        }
    }
    return list;
}

/// Called by the generated methods of webnn.MLGraphBuilder; options are (name, value, is_data_type) triples.
nb::list call_op(MLGraphBuilder& builder, const std::string& name, nb::list operands, nb::list options,
                 const std::string& label) {
    std::vector<MLOperand> list;
    for (nb::handle item : operands) {
        if (item.is_none()) {
            list.emplace_back();
            continue;
        }
        MLOperand operand;
        if (!nb::try_cast(item, operand)) {
            const std::string given = nb::cast<std::string>(item.type().attr("__name__"));
            throw nb::type_error((name + ": an operand is a " + given + ", not an MLOperand").c_str());
        }
        list.push_back(operand);
    }
    MLOptions converted;
    for (nb::handle item : options) {
        const auto triple = nb::cast<nb::tuple>(item);
        converted.emplace_back(nb::cast<std::string>(triple[0]),
                               to_option(triple[1], nb::cast<bool>(triple[2])));
    }
    nb::list results;
    for (MLOperand& operand : builder.op(name, list, converted, label))
        results.append(nb::cast(std::move(operand)));
    return results;
}

MLOperand constant_array(MLGraphBuilder& builder, nb::handle value, nb::object shape,
                         const std::string& type) {
    const DType dtype = parse_data_type(type);
    const ArrayReader reader(value, dtype, "constant");
    MLOperandDescriptor descriptor{dtype, {}};
    if (shape.is_none())
        descriptor.shape.assign(reader.shape().begin(), reader.shape().end());
    else
        descriptor.shape = to_dimensions(shape);
    // A writable array may change after this call; only what nobody can write is shared.
    if (reader.writable()) return builder.constant(descriptor, reader.data(), reader.bytes());
    return builder.constant(descriptor, keep_alive(reader.owner()), reader.data(), reader.bytes());
}

MLOperand state(MLGraphBuilder& builder, const std::string& name, nb::object shape, const std::string& type,
                nb::object initial) {
    const MLOperandDescriptor descriptor{parse_data_type(type), to_dimensions(shape)};
    if (initial.is_none()) return builder.state(name, descriptor);
    const ArrayReader reader(initial, descriptor.dataType, "state");
    return builder.state(name, descriptor, reader.data(), reader.bytes());
}

TensorInfo state_info(const MLGraph& graph, const std::string& name) {
    for (TensorInfo& info : graph.states())
        if (info.name == name) return info;
    graph.readState(name, nullptr, 0);  // throws, and names the states there are
    return {};
}

nb::object read_graph_state(const MLGraph& graph, const std::string& name) {
    const TensorInfo info = state_info(graph, name);
    ArrayWriter writer(info.dtype, info.shape);
    const OutputView view = writer.view();
    {
        nb::gil_scoped_release unlocked;  // a dispatch may be running
        graph.readState(name, view.data, view.bytes);
    }
    return writer.finish();
}

void write_graph_state(const MLGraph& graph, const std::string& name, nb::handle data) {
    const TensorInfo info = state_info(graph, name);
    const ArrayReader reader(data, info.dtype, name.c_str());
    if (reader.shape() != info.shape)
        throw nb::value_error(("write_state: Shape mismatch: the array has shape " +
                               shape_text(reader.shape()) + ", the state " + shape_text(info.shape))
                                  .c_str());
    nb::gil_scoped_release unlocked;
    graph.writeState(name, reader.data(), reader.bytes());
}

nb::dict limits_dict(const MLTensorLimits& limits) {
    nb::dict rank, dict;
    rank["min"] = limits.minRank;
    rank["max"] = limits.maxRank;
    nb::list types;
    for (DType t : limits.dataTypes) types.append(type_text(t));
    dict["dataTypes"] = types;
    dict["rankRange"] = rank;
    return dict;
}

nb::dict support_limits(const MLContext& context) {
    const MLOpSupportLimits& limits = context.opSupportLimits();
    nb::dict dict;
    dict["preferredInputLayout"] = limits.preferredInputLayout;
    dict["maxTensorByteLength"] = limits.maxTensorByteLength;
    dict["input"] = limits_dict(limits.input);
    dict["constant"] = limits_dict(limits.constant);
    dict["output"] = limits_dict(limits.output);
    for (const auto& [name, operands] : limits.operators) {
        nb::dict entry;
        for (const auto& [operand, l] : operands) entry[operand.c_str()] = limits_dict(l);
        dict[name.c_str()] = entry;
    }
    return dict;
}

void bind_signatures(nb::module_& m) {
    nb::class_<MLParameter>(m, "Parameter")
        .def_ro("name", &MLParameter::name)
        .def_ro("target", &MLParameter::target)
        .def_ro("is_operand", &MLParameter::is_operand)
        .def_ro("is_list", &MLParameter::is_list)
        .def_ro("required", &MLParameter::required)
        .def_ro("is_data_type", &MLParameter::is_data_type)
        .def_ro("default_text", &MLParameter::default_text)
        .def_ro("type_text", &MLParameter::type_text)
        .def_ro("doc", &MLParameter::doc);
    nb::class_<MLSignature>(m, "Signature")
        .def_ro("name", &MLSignature::name)
        .def_ro("idl", &MLSignature::idl)
        .def_ro("summary", &MLSignature::summary)
        .def_ro("returns_list", &MLSignature::returns_list)
        .def_ro("parameters", &MLSignature::parameters);
    m.def("signatures", &webnn::signatures, nb::rv_policy::reference);
}

void bind_values(nb::module_& m) {
    nb::class_<MLOperand>(m, "MLOperand", "A value of a graph under construction.")
        .def_prop_ro("data_type", [](const MLOperand& o) { return type_text(o.dataType()); })
        .def_prop_ro("shape", [](const MLOperand& o) { return shape_list(o.shape()); })
        .def_prop_ro("name",
                     [](const MLOperand& o) -> nb::object {
                         const std::string name = o.name();
                         return name.empty() ? nb::none() : nb::object(nb::str(name.c_str()));
                     })
        .def("__repr__", [](const MLOperand& o) {
            const std::string name = o.name();
            return "MLOperand(" + (name.empty() ? "" : "'" + name + "': ") + type_text(o.dataType()) +
                   nb::cast<std::string>(nb::str(shape_list(o.shape()))) + ")";
        });
}

std::vector<std::string> names(const std::vector<TensorInfo>& infos) {
    std::vector<std::string> list;
    for (const TensorInfo& info : infos) list.push_back(info.name);
    return list;
}

std::string signature_text(const std::vector<TensorInfo>& infos) {
    std::string text;
    for (const TensorInfo& info : infos) {
        std::string shape;
        for (std::size_t d = 0; d < info.shape.size(); ++d)
            shape += (d ? ", " : "") +
                     (info.shape[d] < 0 ? info.dimension_names[d] : std::to_string(info.shape[d]));
        text += (text.empty() ? "" : ", ") + info.name + ": " + type_text(info.dtype) + "[" + shape + "]";
    }
    return "{" + text + "}";
}

/// "MLGraph({x: float32[n, 4]} -> {y: float32[n, 2]}, 3 operations)".
std::string graph_repr(const MLGraph& graph) {
    const std::size_t operations = graph.operationCount();
    return "MLGraph(" + signature_text(graph.inputs()) + " -> " + signature_text(graph.outputs()) + ", " +
           std::to_string(operations) + (operations == 1 ? " operation)" : " operations)");
}

void bind_graph(nb::module_& m) {
    nb::class_<MLGraph>(m, "MLGraph", "A compiled graph.")
        .def("get_input_names", [](const MLGraph& g) { return names(g.inputs()); })
        .def("get_output_names", [](const MLGraph& g) { return names(g.outputs()); })
        .def_prop_ro("operand_count", &MLGraph::operandCount)
        .def_prop_ro("operation_count", &MLGraph::operationCount)
        .def(
            "save",
            [](const MLGraph& graph, const Path& path, bool quantized) {
                graph.save(path.string(), quantized);
            },
            nb::arg("path"), nb::arg("quantized") = false, nb::call_guard<nb::gil_scoped_release>(),
            "Writes the graph as built and its weights, as .webnn, .json or, for any other extension, one "
            "file of our own.\n\n"
            "quantized: the constant matrices of products, where they take 64 KiB or more and their inner "
            "extent is a multiple of 32, with 8 bits an element and a scale for every 32 (ggml's q8_0): "
            "about 3.7 times smaller. Products stay in float32, so that results differ by the rounding of "
            "weights only. .webnn and .json say it in int8 and dequantizeLinear.")
        .def("destroy", &MLGraph::destroy)
        .def("read_state", &read_graph_state, nb::arg("name"), "A copy of the state.")
        .def("write_state", &write_graph_state, nb::arg("name"), nb::arg("data"),
             "Replaces the state; ValueError when the shape is another.")
        .def_prop_ro("run_stats", &run_stats, "How the last run went: a dict of RunStats' members.")
        .def_prop_ro("pass_stats", &pass_stats, "What each optimiser pass did: a list of dicts.")
        .def("reset_states", &MLGraph::resetStates, nb::call_guard<nb::gil_scoped_release>(),
             "All states back to their initial values.")
        .def_prop_ro("state_names", [](const MLGraph& g) { return names(g.states()); })
        .def("__str__", &MLGraph::print)
        .def("__repr__", &graph_repr);
    nb::class_<MLGraphBuilder>(m, "MLGraphBuilder", "Builds graphs; an operator a method.")
        .def(nb::init<const MLContext&>(), nb::arg("context"))
        .def(
            "input",
            [](MLGraphBuilder& b, const std::string& name, nb::object shape, const std::string& type) {
                return b.input(name, {parse_data_type(type), to_dimensions(shape)});
            },
            nb::arg("name"), nb::arg("shape"), nb::arg("data_type"))
        .def("_constant_tensor", [](MLGraphBuilder& b, const MLTensor& tensor) { return b.constant(tensor); })
        .def("_constant", &constant_array, nb::arg("value"), nb::arg("shape").none(), nb::arg("data_type"))
        .def("state", &state, nb::arg("name"), nb::arg("shape"), nb::arg("data_type"),
             nb::arg("initial").none() = nb::none(),
             "Extension: a tensor that persists between dispatches; zeros unless `initial` is given.")
        .def("assign", &MLGraphBuilder::assign, nb::arg("state"), nb::arg("value"), nb::arg("label") = "",
             "Extension: the state takes the value; returns its new version.")
        .def("accumulate", &MLGraphBuilder::accumulate, nb::arg("state"), nb::arg("source"),
             nb::arg("offset") = 0, nb::arg("label") = "",
             "Extension: state[offset : offset + n] += source, flattened and in place; the new version.")
        .def("_op", &call_op)
        .def("build", &MLGraphBuilder::buildNext, nb::arg("outputs"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Compiles a graph of the outputs and what they need of all that was built so far.\n\n"
             "The builder goes on: operands of before and after serve later graphs. Its inputs that a "
             "graph does not need are not among that graph's; they may be given to it all the same and "
             "are not read. Graphs share constants, which the builder keeps as long as it lives, and have "
             "states of their own; what writes to a state is part of the graph that is built next.");
}

void bind_context(nb::module_& m) {
    nb::class_<MLContext> context(m, "MLContext", "Where graphs are compiled and run.");
    context
        .def(
            "__init__",
            [](MLContext* self, const std::string& power, bool accelerated, const std::string& device,
               int host_timeout_ms, int threads, const std::string& weights, const std::string& packed_cache,
               const std::string& device_type, const std::string& precision) {
                new (self) MLContext({power, accelerated, device, host_timeout_ms, threads, weights,
                                      packed_cache, device_type, precision});
            },
            nb::arg("power_preference") = "default", nb::arg("accelerated") = true, nb::arg("device") = "",
            nb::arg("host_timeout_ms") = 60000, nb::arg("threads") = 0, nb::arg("weights") = "",
            nb::arg("packed_cache") = "", nb::arg("device_type") = "auto", nb::arg("precision") = "exact")
        .def_prop_ro("accelerated", &MLContext::accelerated)
        .def_prop_ro("power_preference", &MLContext::powerPreference)
        .def_prop_ro("device", &MLContext::device)
        .def("create_graph_builder", [](const MLContext& c) { return MLGraphBuilder(c); })
        .def("op_support_limits", &support_limits)
        .def("destroy", &MLContext::destroy, "Makes every later call on the context fail.")
        .def_prop_ro("buffer_stats", &buffer_stats,
                     "What the context's memory pool did and holds: a dict of BufferStats' members.")
        .def(
            "reset_buffers", [](const MLContext& c) { c.buffers().reset(); },
            "Frees the memory that the pool keeps for reuse.")
        .def("_load_shared", &MLContext::loadShared, nb::arg("path"), nb::arg("manifest_path"),
             nb::arg("weights_path"), nb::call_guard<nb::gil_scoped_release>())
        .def(
            "load_graph",
            [](const MLContext& c, const Path& path, const std::optional<Path>& manifest,
               const std::optional<Path>& weights) {
                const nb::gil_scoped_release release;
                return c.load(path.string(), manifest.value_or("").string(), weights.value_or("").string());
            },
            nb::arg("path"), nb::arg("manifest_path") = nb::none(), nb::arg("weights_path") = nb::none())
        .def("__repr__", [](const MLContext& c) {
            return "MLContext(device='" + c.device() + "', power_preference='" + c.powerPreference() +
                   "', accelerated=" + (c.accelerated() ? "True)" : "False)");
        });
    bind_tensor_calls(context);
    bind_runs(context);
}

}  // namespace

void bind_webnn(nb::module_& m) {
    bind_signatures(m);
    bind_tensors(m);
    bind_values(m);
    bind_graph(m);
    bind_context(m);
}

}  // namespace headrace::python
