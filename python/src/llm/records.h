#pragma once
#include <nanobind/nanobind.h>

namespace headrace::python {

/// headrace.language_model.Reply and the other records: a language model's results as read-only attributes.
void bind_records(nanobind::module_& m);

}  // namespace headrace::python
