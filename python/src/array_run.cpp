#include "array_run.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

namespace headrace::python {
namespace {

void check_names(const ArrayRun& run, const std::vector<TensorInfo>& infos, nb::dict given,
                 const char* kind) {
    for (const auto& [key, array] : given) {
        std::string name;
        if (!nb::try_cast(key, name))
            throw nb::type_error((std::string(run.call) + ": the name of an " + kind + " is no str").c_str());
        if (std::none_of(infos.begin(), infos.end(),
                         [&](const TensorInfo& info) { return info.name == name; }))
            throw nb::value_error(
                (std::string(run.call) + ": the graph has no " + kind + " '" + name + "'").c_str());
    }
}

bool is_open(const TensorInfo& info) {
    return std::find(info.shape.begin(), info.shape.end(), -1) != info.shape.end();
}

/// Of the outputs, for these inputs.
Shapes shapes_of(const ArrayRun& run, const std::vector<ArrayReader>& readers) {
    Shapes shapes;
    if (std::none_of(run.outputs.begin(), run.outputs.end(), is_open)) {
        for (const TensorInfo& info : run.outputs) shapes.push_back(info.shape);
        return shapes;
    }
    for (const ArrayReader& reader : readers) shapes.push_back(reader.shape());
    const nb::gil_scoped_release others_run;
    return run.output_shapes(shapes);
}

}  // namespace

PyObject* entry(nb::handle dict, const std::string& name) {
    return PyDict_GetItem(dict.ptr(), to_str(name).ptr());
}

nb::str to_str(const std::string& name) { return nb::str(name.data(), name.size()); }

nb::dict ArrayRun::operator()(nb::dict given, nb::object into) const {
    if (!into.is_none()) {
        if (!nb::isinstance<nb::dict>(into))
            throw nb::type_error((std::string(call) + ": outputs must be a dict of arrays").c_str());
        check_names(*this, outputs, nb::cast<nb::dict>(into), "output");
    }
    std::vector<ArrayReader> readers;
    std::vector<InputView> in;
    readers.reserve(inputs.size());
    for (const TensorInfo& info : inputs) {
        PyObject* array = entry(given, info.name);
        if (!array) throw nb::value_error(("Missing input: " + info.name).c_str());
        readers.emplace_back(array, info.dtype, ("input '" + info.name + "'").c_str(), conversion);
        in.push_back({info.dtype, readers.back().shape(), readers.back().data()});
    }
    if (nb::len(given) != readers.size()) check_names(*this, inputs, given, "input");
    const Shapes shapes = shapes_of(*this, readers);
    std::vector<ArrayWriter> writers;
    std::vector<OutputView> out;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        const TensorInfo& info = outputs[i];
        PyObject* target = into.is_none() ? nullptr : entry(into, info.name);
        if (target)
            writers.emplace_back(target, info.dtype, shapes[i], info.name.c_str());
        else
            writers.emplace_back(info.dtype, shapes[i]);
        out.push_back(writers.back().view());
    }
    {
        const nb::gil_scoped_release others_run;
        run(in, out);
    }
    nb::dict results;
    for (std::size_t i = 0; i < writers.size(); ++i) results[to_str(outputs[i].name)] = writers[i].finish();
    return results;
}

}  // namespace headrace::python
