#pragma once
#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "headrace/tensor.h"

namespace headrace::python {

namespace nb = nanobind;

/// The tensor that a headrace.Tensor is, as long as the object lives; null for other objects.
Tensor* find_run_tensor(nb::handle object);

/// What output `info` goes into where a caller gave `given` for it: a headrace.Tensor, or a new one where
/// that is the class; invalid where it is neither. ValueError for a tensor of another type.
nb::object output_tensor(nb::handle given, const TensorInfo& info, const std::vector<std::int64_t>& shape);

}  // namespace headrace::python
