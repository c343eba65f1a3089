#pragma once
#include <nanobind/nanobind.h>

namespace headrace::python {

/// Has the functions and classes of an extension say in a sentence which argument they do not take, where
/// nanobind prints C++'s signatures. Last in a module: it changes what is bound by then.
void say_argument_errors(nanobind::module_& m);

}  // namespace headrace::python
