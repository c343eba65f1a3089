#pragma once
#include "ggml-cpu/traits.h"

namespace headrace::packed {

/// What ggml's CPU backend asks about nodes, and calls for products with packed weights.
ggml::cpu::extra_buffer_type* products();

}  // namespace headrace::packed
