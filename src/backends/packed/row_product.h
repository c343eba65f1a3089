#pragma once
#include "ggml-cpu/traits.h"

namespace headrace::packed {

/// Whether a product is one of weights as ggml has them, of any type, in plain memory.
bool has_row_product(const ggml_tensor* node);

/// Computes such a product element by element, each as ggml would that of a single row, whatever rows are
/// beside it.
ggml::cpu::tensor_traits* row_product();

}  // namespace headrace::packed
