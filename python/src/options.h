#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "headrace/webnn.h"

namespace headrace::python {

namespace nb = nanobind;

/// Integers, and {"name": ..., "maxSize": ...} for extents that are known only at run time.
std::vector<webnn::MLDimension> to_dimensions(nb::handle shape);

/// A keyword argument of an operator. Lists of names travel as one text, separated by commas.
webnn::MLOption to_option(nb::handle value, bool is_data_type);

/// "exact" or "fast"; ValueError for any other.
Precision to_precision(const std::string& name);

}  // namespace headrace::python
