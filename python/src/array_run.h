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
    /// Called without the GIL, and calls back when it knows the outputs' shapes.
    std::function<void(std::span<const InputView>, const Session::MakeOutputs&)> run;
    /// Whether a name that is no input may be given all the same; it is not read.
    std::function<bool(const std::string& name)> may_be_given = [](const std::string&) { return false; };

    /// `given` are all inputs by name; `into` is None, or a dict of arrays and tensors that some outputs go
    /// into. Returns a dict of every output by name.
    nb::dict operator()(nb::dict given, nb::object into) const;
};

/// The entry of a dict, null when absent; names may hold any character.
PyObject* entry(nb::handle dict, const std::string& name);
/// The entry of a dict of inputs or outputs, as `kind` says; ValueError, which names the call, when it is
/// absent.
PyObject* needed_entry(const char* call, const char* kind, nb::dict given, const std::string& name,
                       const std::vector<TensorInfo>& infos);
nb::str to_str(const std::string& name);

/// TypeError for what is no str; ValueError, which names the call and the kind, for what none of `infos` is
/// called and what may not be given all the same.
void check_names(const char* call, const char* kind, const std::vector<TensorInfo>& infos, nb::dict given,
                 const std::function<bool(const std::string& name)>& may_be_given = {});

/// The shapes that the outputs will have; `compute` is called, without the GIL, only where those depend on
/// the inputs'.
Shapes shapes_of_outputs(const std::vector<TensorInfo>& outputs, const Shapes& inputs,
                         const std::function<Shapes(const Shapes& inputs)>& compute);

}  // namespace headrace::python
