#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "arrays.h"
#include "headrace/headrace.h"

namespace headrace::python {

using Shapes = std::vector<std::vector<std::int64_t>>;

/// A call that computes arrays from arrays by name: what of it the doors have in common.
struct ArrayRun {
    const char* call;  ///< names it in messages
    const std::vector<TensorInfo>& inputs;
    const std::vector<TensorInfo>& outputs;
    Conversion conversion;
    /// Both are called without the GIL.
    std::function<Shapes(const Shapes& inputs)> output_shapes;
    std::function<void(std::span<const InputView>, std::span<const OutputView>)> run;

    /// `given` are all inputs by name; `into` is None, or a dict of arrays that some outputs go into. Returns
    /// a dict of every output by name.
    nb::dict operator()(nb::dict given, nb::object into) const;
};

/// The entry of a dict, null when absent; names may hold any character.
PyObject* entry(nb::handle dict, const std::string& name);
nb::str to_str(const std::string& name);

}  // namespace headrace::python
