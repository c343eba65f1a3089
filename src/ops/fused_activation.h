/// What a fused op applies to its sums.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "emit/emit.h"
#include "kernels/gemm_f32.h"

namespace headrace::ops {

enum class Activation : std::uint8_t { none, relu, gelu, tanh, sigmoid, silu };
constexpr auto enum_names(Activation) {
    return std::array<std::string_view, 6>{"none", "relu", "gelu", "tanh", "sigmoid", "silu"};
}

double activate(Activation f, double x);
kernels::Activation kernel_activation(Activation f);
ggml_tensor* lower_activation(Emit& e, Activation f, ggml_tensor* x);

}  // namespace headrace::ops
