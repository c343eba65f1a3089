#include "runs.h"

#include <nanobind/stl/string.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "array_run.h"
#include "arrays.h"
#include "bindings.h"
#include "tensors.h"

/// compute and dispatch: what they are given, checked and converted before anything runs.
namespace headrace::python {
namespace {

using namespace webnn;

/// What a tensor gives as an array is a copy of its content, into which results would vanish.
void check_arrays(nb::dict outputs) {
    for (const auto& [key, value] : outputs)
        if (find_tensor(value))
            throw nb::type_error(("compute: output '" + nb::cast<std::string>(nb::str(key)) +
                                  "' is a tensor; dispatch writes to tensors, compute to arrays")
                                     .c_str());
}

nb::dict compute(const MLContext& context, const MLGraph& graph, nb::dict inputs, nb::object outputs,
                 nb::object alias, bool reuse_buffers) {
    if (outputs.is_none()) outputs = alias;
    context.checkLive("compute");
    context.checkGraph("compute", graph);
    if (nb::isinstance<nb::dict>(outputs)) check_arrays(nb::cast<nb::dict>(outputs));
    const ArrayRun run{.call = "compute",
                       .inputs = graph.inputs(),
                       .outputs = graph.outputs(),
                       .run =
                           [&](std::span<const InputView> in, const Session::MakeOutputs& make_outputs) {
                               Shapes shapes;
                               for (const InputView& view : in)
                                   shapes.emplace_back(view.shape.begin(), view.shape.end());
                               const auto out = make_outputs(graph.outputShapes(shapes));
                               graph.run(in, out, {.reuse_buffers = reuse_buffers});
                           },
                       .may_be_given = [&](const std::string& name) { return graph.mayBeGiven(name); }};
    return run(inputs, outputs);
}

void dispatch(const MLContext& context, const MLGraph& graph, nb::dict inputs, nb::dict outputs) {
    context.checkLive("dispatch");
    context.checkGraph("dispatch", graph);
    check_names("dispatch", "input", graph.inputs(), inputs,
                [&](const std::string& name) { return graph.mayBeGiven(name); });
    check_names("dispatch", "output", graph.outputs(), outputs);
    std::deque<ArrayReader> readers;
    std::vector<ArrayWriter> writers;
    MLBindings in, out;
    Shapes shapes;
    for (const TensorInfo& info : graph.inputs()) {
        const nb::handle value = needed_entry("dispatch", "input", inputs, info.name, graph.inputs());
        if (const MLTensor* tensor = find_tensor(value)) {
            in.emplace(info.name, *tensor);
            shapes.push_back(tensor->shape());
            continue;
        }
        const ArrayReader& array =
            readers.emplace_back(value, info.dtype, ("input '" + info.name + "'").c_str());
        // Only read: bindings of inputs and outputs have one type.
        in.emplace(info.name, MLBinding(info.dtype, array.shape(), const_cast<void*>(array.data())));
        shapes.push_back(array.shape());
    }
    shapes = shapes_of_outputs(graph.outputs(), shapes,
                               [&](const Shapes& given) { return graph.outputShapes(given); });
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        const TensorInfo& info = graph.outputs()[i];
        const nb::handle value = needed_entry("dispatch", "output", outputs, info.name, graph.outputs());
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
