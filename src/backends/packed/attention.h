#pragma once
#include "ggml-cpu/traits.h"

namespace headrace::packed {

/// What computes a node of ggml's flash attention in place of ggml's CPU kernel; null where that suits it
/// better: other caches than f16, ALiBi, or fewer pieces of work than threads. See make_invariant() for
/// another one.
ggml::cpu::tensor_traits* attention_of(const ggml_tensor* node);

}  // namespace headrace::packed
