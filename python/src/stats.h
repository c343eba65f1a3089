#pragma once
#include <nanobind/nanobind.h>

#include "headrace/webnn.h"

namespace headrace::python {

namespace nb = nanobind;

/// BufferStats, RunStats and the list of PassStats with their members' names.
nb::dict buffer_stats(const webnn::MLContext& context);
nb::dict run_stats(const webnn::MLGraph& graph);
nb::list pass_stats(const webnn::MLGraph& graph);

}  // namespace headrace::python
