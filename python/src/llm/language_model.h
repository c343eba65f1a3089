#pragma once
#include <nanobind/nanobind.h>

namespace headrace::python {

void bind_language_model(nanobind::module_& m);

}  // namespace headrace::python
