#pragma once

struct ggml_tensor;

namespace headrace {

struct LoweredGraph;

/// Makes host memory that ggml did not allocate (a caller's array, a mapped file, a state) the tensor's own.
/// Null stands for "bound before the first run".
void place_on_host(ggml_tensor* tensor, void* data);
bool is_on_host(const ggml_tensor* tensor);

/// The same for activations and inputs without elements. ggml's allocator gives a graph that needs no memory
/// at all none, takes such tensors for unplaced, and aborts.
void place_empty_tensors(const LoweredGraph& lowered);

}  // namespace headrace
