/// What a fused op applies to its sums.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "emit/emit.h"
#include "kernels/gemm/gemm_f32.h"

namespace headrace::ops {

/// gelu is the erf form.
enum class Activation : std::uint8_t { none, relu, gelu, tanh, sigmoid, silu, gelu_tanh };
constexpr auto enum_names(Activation) {
    return std::array<std::string_view, 7>{"none", "relu", "gelu", "tanh", "sigmoid", "silu", "gelu_tanh"};
}

double activate(Activation f, double x);
kernels::Activation kernel_activation(Activation f);
ggml_tensor* lower_activation(Emit& e, Activation f, ggml_tensor* x);

/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))) / 2.
double gelu_tanh(double x);
ggml_tensor* lower_gelu_tanh(Emit& e, ggml_tensor* x);

}  // namespace headrace::ops
