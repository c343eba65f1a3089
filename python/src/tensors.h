#pragma once
#include <nanobind/nanobind.h>

#include <string>

#include "headrace/webnn.h"

namespace headrace::python {

namespace nb = nanobind;

/// pywebnn's MLDeviceTensor: a tensor that knows its context.
struct DeviceTensor {
    webnn::MLContext context;
    webnn::MLTensor tensor;
};

/// The tensor that an MLTensor or MLDeviceTensor is, as long as the object lives; null for other objects.
const webnn::MLTensor* find_tensor(nb::handle object);

/// "float32[2, 3]".
std::string type_text(DType type, const std::vector<std::int64_t>& shape);

void bind_tensors(nb::module_& m);
void bind_tensor_calls(nb::class_<webnn::MLContext>& context);

}  // namespace headrace::python
