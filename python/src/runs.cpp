#include "runs.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "tensors.h"

/// compute and dispatch: what they are given, checked and converted before anything runs.
namespace headrace::python {
namespace {

using namespace webnn;
using Shapes = std::vector<std::vector<std::int64_t>>;

/// The dictionary's entry; names may hold any character. Null when absent.
PyObject* find(nb::handle dict, const std::string& name) {
    return PyDict_GetItem(dict.ptr(), nb::str(name.data(), name.size()).ptr());
}

PyObject* find_input(nb::dict inputs, const TensorInfo& info) {
    PyObject* value = find(inputs, info.name);
    if (!value) throw nb::value_error(("Missing input: " + info.name).c_str());
    return value;
}

bool has(const std::vector<TensorInfo>& infos, const std::string& name) {
    return std::any_of(infos.begin(), infos.end(), [&](const TensorInfo& i) { return i.name == name; });
}

std::string name_of(nb::handle key, const char* call) {
    if (nb::isinstance<nb::str>(key)) return nb::cast<std::string>(key);
    const auto given = nb::cast<std::string>(key.type().attr("__name__"));
    throw nb::type_error((std::string(call) + ": a name is a str, not a " + given).c_str());
}

[[noreturn]] void fail_unknown(const char* call, const char* kind, const std::string& name) {
    throw nb::value_error((std::string(call) + ": the graph has no " + kind + " '" + name + "'").c_str());
}

void check_inputs(const MLGraph& graph, nb::dict inputs, const char* call) {
    for (const auto& [key, value] : inputs) {
        const auto name = name_of(key, call);
        if (!has(graph.inputs(), name) && !graph.mayBeGiven(name)) fail_unknown(call, "input", name);
    }
}

void check_outputs(const MLGraph& graph, nb::dict outputs, const char* call) {
    for (const auto& [key, value] : outputs) {
        const auto name = name_of(key, call);
        if (!has(graph.outputs(), name)) fail_unknown(call, "output", name);
    }
}

/// What a tensor gives as an array is a copy of its content, into which results would vanish.
void check_arrays(nb::dict outputs) {
    for (const auto& [key, value] : outputs)
        if (find_tensor(value))
            throw nb::type_error(("compute: output '" + nb::cast<std::string>(key) +
                                  "' is a tensor; dispatch writes to tensors, compute to arrays")
                                     .c_str());
}

/// The shapes that the outputs will have; those that do not depend on the inputs as the graph declares them.
Shapes output_shapes(const MLGraph& graph, const Shapes& inputs) {
    Shapes shapes;
    for (const TensorInfo& info : graph.outputs()) shapes.push_back(info.shape);
    const auto is_dynamic = [](const auto& shape) { return std::ranges::count(shape, -1) > 0; };
    return std::ranges::any_of(shapes, is_dynamic) ? graph.outputShapes(inputs) : shapes;
}

nb::dict compute(const MLContext& context, const MLGraph& graph, nb::dict inputs, nb::object outputs,
                 nb::object alias, bool reuse_buffers) {
    if (outputs.is_none()) outputs = alias;
    context.checkLive("compute");
    context.checkGraph("compute", graph);
    if (!outputs.is_none() && !nb::isinstance<nb::dict>(outputs))
        throw nb::type_error("compute: outputs must be a dict of arrays");
    if (!outputs.is_none()) {
        check_outputs(graph, nb::cast<nb::dict>(outputs), "compute");
        check_arrays(nb::cast<nb::dict>(outputs));
    }
    std::vector<ArrayReader> readers;
    std::vector<InputView> in;
    Shapes shapes;
    readers.reserve(graph.inputs().size());
    for (const TensorInfo& info : graph.inputs()) {
        readers.emplace_back(find_input(inputs, info), info.dtype, info.name.c_str());
        in.push_back({info.dtype, readers.back().shape(), readers.back().data()});
        shapes.push_back(readers.back().shape());
    }
    if (nb::len(inputs) != readers.size()) check_inputs(graph, inputs, "compute");
    shapes = output_shapes(graph, shapes);
    std::vector<ArrayWriter> writers;
    std::vector<OutputView> out;
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        const TensorInfo& info = graph.outputs()[i];
        PyObject* into = outputs.is_none() ? nullptr : find(outputs, info.name);
        if (into)
            writers.emplace_back(into, info.dtype, shapes[i], info.name.c_str());
        else
            writers.emplace_back(info.dtype, shapes[i]);
        out.push_back(writers.back().view());
    }
    check_apart(writers);
    {
        nb::gil_scoped_release unlocked;
        graph.run(in, out, {.reuse_buffers = reuse_buffers});
    }
    nb::dict results;
    for (std::size_t i = 0; i < writers.size(); ++i)
        results[nb::str(graph.outputs()[i].name.data(), graph.outputs()[i].name.size())] =
            writers[i].finish();
    return results;
}

void dispatch(const MLContext& context, const MLGraph& graph, nb::dict inputs, nb::dict outputs) {
    context.checkLive("dispatch");
    context.checkGraph("dispatch", graph);
    check_inputs(graph, inputs, "dispatch");
    check_outputs(graph, outputs, "dispatch");
    std::deque<ArrayReader> readers;
    std::vector<ArrayWriter> writers;
    MLBindings in, out;
    Shapes shapes;
    for (const TensorInfo& info : graph.inputs()) {
        const nb::handle value = find_input(inputs, info);
        if (const MLTensor* tensor = find_tensor(value)) {
            in.emplace(info.name, *tensor);
            shapes.push_back(tensor->shape());
            continue;
        }
        const ArrayReader& array = readers.emplace_back(value, info.dtype, info.name.c_str());
        // Only read: bindings of inputs and outputs have one type.
        in.emplace(info.name, MLBinding(info.dtype, array.shape(), const_cast<void*>(array.data())));
        shapes.push_back(array.shape());
    }
    shapes = output_shapes(graph, shapes);
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        const TensorInfo& info = graph.outputs()[i];
        const nb::handle value = find(outputs, info.name);
        if (!value.is_valid()) throw nb::value_error(("Missing output: " + info.name).c_str());
        if (const MLTensor* tensor = find_tensor(value)) {
            out.emplace(info.name, *tensor);
            continue;
        }
        writers.emplace_back(value, info.dtype, shapes[i], info.name.c_str());
        out.emplace(info.name, MLBinding(info.dtype, shapes[i], writers.back().view().data));
    }
    check_apart(writers);
    {
        nb::gil_scoped_release unlocked;
        context.dispatchBound(graph, in, out);
    }
    for (ArrayWriter& writer : writers) writer.finish();
}

}  // namespace

void bind_runs(nb::class_<MLContext>& context) {
    context
        .def("compute", &compute, nb::arg("graph"), nb::arg("inputs"), nb::arg("outputs") = nb::none(),
             nb::arg("_outputs") = nb::none(), nb::arg("reuse_buffers") = true,
             "Runs the graph on arrays; a dict of results, which are the arrays of `outputs` where given. "
             "Those may be inputs, too. Errors come before anything is computed.")
        .def("dispatch", &dispatch, nb::arg("graph"), nb::arg("inputs"), nb::arg("outputs"),
             "Runs the graph on tensors of the context, device tensors and arrays, mixed at will; the "
             "outputs, "
             "which are complete when it returns, on tensors and writable arrays.\n\n"
             "An output may be an input, too: a tensor then takes new memory and nothing is copied, while an "
             "array is copied into. Errors come before anything is computed: ValueError for what is missing, "
             "unknown, of another type or shape, another context's or read-only; RuntimeError for destroyed "
             "tensors.");
}

}  // namespace headrace::python
