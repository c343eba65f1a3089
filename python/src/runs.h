#pragma once
#include <nanobind/nanobind.h>

#include "headrace/webnn.h"

namespace headrace::python {

void bind_runs(nanobind::class_<webnn::MLContext>& context);

}  // namespace headrace::python
