#pragma once
#include <nanobind/nanobind.h>

#include "headrace/webnn.h"

namespace headrace::python {

namespace nb = nanobind;

/// Dictionaries of all members by their names.
nb::dict to_dict(const BufferStats& stats);
nb::dict to_dict(const RunStats& stats);
nb::dict to_dict(const CompileStats& stats);
nb::list to_list(const std::vector<PassStats>& passes);

nb::dict buffer_stats(const webnn::MLContext& context);
nb::dict run_stats(const webnn::MLGraph& graph);
nb::list pass_stats(const webnn::MLGraph& graph);

}  // namespace headrace::python
