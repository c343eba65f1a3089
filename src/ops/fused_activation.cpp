#include "ops/fused_activation.h"

#include <cmath>

#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

constexpr double kGeluScale = 0.79788456080286535588, kGeluCube = 0.044715;  // sqrt(2 / pi)

}  // namespace

double gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCube * x * x * x))); }

/// From ggml's other functions: its own takes values from a table in f16.
ggml_tensor* lower_gelu_tanh(Emit& e, ggml_tensor* x) {
    const auto factor = static_cast<float>(kGeluScale * kGeluCube);
    ggml_tensor* slope = e.scale(e.binary(Binary::mul, x, x), factor, static_cast<float>(kGeluScale));
    ggml_tensor* curve = e.unary(Unary::tanh, e.binary(Binary::mul, x, slope));
    return e.binary(Binary::mul, x, e.scale(curve, 0.5f, 0.5f));
}

double activate(Activation f, double x) {
    switch (f) {
        case Activation::none: return x;
        case Activation::relu: return x < 0 ? 0 : x;
        case Activation::gelu: return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440));
        case Activation::tanh: return std::tanh(x);
        case Activation::sigmoid: return 1 / (1 + std::exp(-x));
        case Activation::silu: return x / (1 + std::exp(-x));
        case Activation::gelu_tanh: return gelu_tanh(x);
    }
    return x;
}

kernels::Activation kernel_activation(Activation f) {
    switch (f) {
        case Activation::none: return kernels::Activation::none;
        case Activation::relu: return kernels::Activation::relu;
        case Activation::gelu: return kernels::Activation::gelu_erf;
        case Activation::tanh: return kernels::Activation::tanh;
        case Activation::sigmoid: return kernels::Activation::sigmoid;
        case Activation::silu: return kernels::Activation::silu;
        case Activation::gelu_tanh: return kernels::Activation::gelu_tanh;
    }
    return kernels::Activation::none;
}

ggml_tensor* lower_activation(Emit& e, Activation f, ggml_tensor* x) {
    switch (f) {
        case Activation::none: return x;
        case Activation::relu: return keep_nan(e, e.unary(Unary::relu, x), x);
        case Activation::gelu: return e.unary(Unary::gelu_erf, x);
        case Activation::tanh: return e.unary(Unary::tanh, x);
        case Activation::sigmoid: return e.unary(Unary::sigmoid, x);
        case Activation::silu: return e.unary(Unary::silu, x);
        case Activation::gelu_tanh: return lower_gelu_tanh(e, x);
    }
    return x;
}

}  // namespace headrace::ops
