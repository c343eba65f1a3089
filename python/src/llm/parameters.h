#pragma once
#include <nanobind/nanobind.h>

#include <functional>
#include <string>
#include <vector>

#include "headrace/language_model.h"

namespace headrace::python {

namespace nb = nanobind;

/// The type of all parameters in signatures.
#define HEADRACE_PARAMETERS "collections.abc.Mapping[str, object] | None = None"

/// What a mapping of names to values says; None says nothing. TypeError and ValueError name the parameter:
/// values are None, bool, int, float, str, paths, lists and mappings of them, and what has `tolist()`.
Parameters to_parameters(nb::handle mapping);
/// TypeError where parameters are given as arguments, such as n_ctx=4096: they are one mapping. `call` is
/// what stands before it, as in "generate(prompt, ".
void refuse_arguments(const char* call, const nb::kwargs& given);
/// A method for nanobind of a function of an object, a first argument and parameters, which refuses others.
template <class Self, class F>
auto without_arguments(const char* call, F function) {
    return [call, function](Self& self, nb::handle first, nb::handle parameters, const nb::kwargs& others) {
        refuse_arguments(call, others);
        return std::invoke(function, self, first, parameters);
    };
}
/// Those of `above` go over those of `base`, in sections, too.
void merge(Parameters& base, const Parameters& above);

/// A str as UTF-8. TypeError, which names `what`, for another object.
std::string to_text(nb::handle text, const char* what);
std::vector<std::string> to_texts(nb::handle texts, const char* what);
/// A prompt, or messages: headrace.language_model.Message objects, or mappings of their attributes.
Request to_request(nb::handle prompt, nb::handle parameters);

}  // namespace headrace::python
