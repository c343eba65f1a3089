#include "array_run.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

#include "run_tensor.h"

namespace headrace::python {
PyObject* entry(nb::handle dict, const std::string& name) {
    return PyDict_GetItem(dict.ptr(), to_str(name).ptr());
}

PyObject* needed_entry(const char* call, const char* kind, nb::dict given, const std::string& name,
                       const std::vector<TensorInfo>& infos) {
    if (PyObject* value = entry(given, name)) return value;
    std::string all;
    for (const TensorInfo& info : infos) all += (all.empty() ? "" : ", ") + info.name;
    throw nb::value_error((std::string(call) + ": Missing " + kind + ": " + name + "; the graph's " + kind +
                           (infos.size() == 1 ? " is " : "s are ") + all)
                              .c_str());
}

nb::str to_str(const std::string& name) { return nb::str(name.data(), name.size()); }

void check_names(const char* call, const char* kind, const std::vector<TensorInfo>& infos, nb::dict given,
                 const std::function<bool(const std::string& name)>& may_be_given) {
    for (const auto& [key, value] : given) {
        std::string name;
        if (!nb::try_cast(key, name) && nb::isinstance<nb::str>(key))
            throw nb::value_error((std::string(call) + ": a name is no text that UTF-8 can hold: " +
                                   nb::cast<std::string>(key.attr("__repr__")()))
                                      .c_str());
        if (!nb::isinstance<nb::str>(key))
            throw nb::type_error((std::string(call) + ": a name is a str, not a " +
                                  nb::cast<std::string>(key.type().attr("__name__")))
                                     .c_str());
        const auto is_called = [&](const TensorInfo& info) { return info.name == name; };
        if (std::ranges::none_of(infos, is_called) && !(may_be_given && may_be_given(name)))
            throw nb::value_error(
                (std::string(call) + ": the graph has no " + kind + " '" + name + "'").c_str());
    }
}

Shapes shapes_of_outputs(const std::vector<TensorInfo>& outputs, const Shapes& inputs,
                         const std::function<Shapes(const Shapes& inputs)>& compute) {
    Shapes shapes;
    for (const TensorInfo& info : outputs) shapes.push_back(info.shape);
    const auto is_open = [](const auto& shape) { return std::ranges::count(shape, -1) > 0; };
    if (std::ranges::none_of(shapes, is_open)) return shapes;
    const nb::gil_scoped_release others_run;
    return compute(inputs);
}

nb::dict ArrayRun::operator()(nb::dict given, nb::object into) const {
    if (!into.is_none()) {
        if (!nb::isinstance<nb::dict>(into))
            throw nb::type_error((std::string(call) + ": outputs must be a dict of arrays").c_str());
        check_names(call, "output", outputs, nb::cast<nb::dict>(into));
    }
    std::vector<ArrayReader> readers;
    std::vector<InputView> in;
    readers.reserve(inputs.size());
    std::vector<nb::object> used;  // tensors, which another thread may take out of the dicts
    for (const TensorInfo& info : inputs) {
        const nb::handle value = needed_entry(call, "input", given, info.name, inputs);
        if (const Tensor* tensor = find_run_tensor(value); tensor && tensor->dtype() == info.dtype) {
            used.push_back(nb::borrow(value));
            in.push_back(tensor->input());
            continue;
        }
        readers.emplace_back(value, info.dtype, ("input '" + info.name + "'").c_str());
        in.push_back({info.dtype, readers.back().shape(), readers.back().data()});
    }
    if (nb::len(given) != inputs.size()) check_names(call, "input", inputs, given, may_be_given);
    std::vector<ArrayWriter> writers;
    std::vector<nb::object> tensors(outputs.size());  // that outputs go into in place of arrays
    const auto make_outputs = [&](const Shapes& shapes) {
        const nb::gil_scoped_acquire for_arrays;
        std::vector<OutputView> out;
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            const TensorInfo& info = outputs[i];
            PyObject* target = into.is_none() ? nullptr : entry(into, info.name);
            if (target) tensors[i] = output_tensor(target, info, shapes[i]);
            if (tensors[i].is_valid()) {
                out.push_back(find_run_tensor(tensors[i])->output());
                continue;
            }
            if (target)
                writers.emplace_back(target, info.dtype, shapes[i], info.name.c_str());
            else
                writers.emplace_back(info.dtype, shapes[i]);
            out.push_back(writers.back().view());
        }
        check_apart(writers);
        return out;
    };
    {
        const nb::gil_scoped_release others_run;
        run(in, make_outputs);
    }
    nb::dict results;
    auto writer = writers.begin();
    for (std::size_t i = 0; i < outputs.size(); ++i)
        results[to_str(outputs[i].name)] = tensors[i].is_valid() ? tensors[i] : (writer++)->finish();
    return results;
}

}  // namespace headrace::python
