#pragma once

struct ggml_tensor;

namespace headrace {

/// Makes host memory that ggml did not allocate (a caller's array, a mapped file, a state) the tensor's own.
/// Null stands for "bound before the first run".
void place_on_host(ggml_tensor* tensor, void* data);
bool is_on_host(const ggml_tensor* tensor);

}  // namespace headrace
