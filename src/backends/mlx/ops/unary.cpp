#include <cmath>

#include "backends/mlx/ops/families.h"

namespace headrace::mlx {

array relu(const array& x) { return mx::maximum(x, array(0.0f)); }

namespace {

using Function = array (*)(const array&);

array hard_sigmoid(const array& x) {
    return mx::clip((x + array(3.0f)) / array(6.0f), array(0.0f), array(1.0f));
}
/// MLX's own is infinite from 88.4 on already; f32 reaches to 88.7.
array exponential(const array& x) {
    return mx::where(x > array(88.0f), mx::square(mx::exp(x * array(0.5f))), mx::exp(x));
}
array xielu(const array& x, const ggml_tensor* t) {
    const array negative_slope(float_param(t, 1)), positive_slope(float_param(t, 2)), beta(float_param(t, 3)),
        eps(float_param(t, 4));
    return mx::where(x > array(0.0f), positive_slope * mx::square(x) + beta * x,
                     (mx::expm1(mx::minimum(x, eps)) - x) * negative_slope + beta * x);
}
/// ggml rounds halves away from zero, MLX to even.
array round_half_away(const array& x) {
    const array whole = mx::floor(mx::abs(x)), rest = mx::abs(x) - whole;
    return mx::sign(x) * mx::where(rest >= array(0.5f), whole + array(1.0f), whole);
}

array unary(ggml_unary_op op, const array& x, const ggml_tensor* t) {
    switch (op) {
        case GGML_UNARY_OP_ABS: return mx::abs(x);
        case GGML_UNARY_OP_SGN: return mx::sign(x);
        case GGML_UNARY_OP_NEG: return mx::negative(x);
        case GGML_UNARY_OP_STEP: return mx::astype(x > array(0.0f), mx::float32);
        case GGML_UNARY_OP_TANH: return mx::tanh(x);
        case GGML_UNARY_OP_ELU: return mx::where(x > array(0.0f), x, mx::expm1(x));
        case GGML_UNARY_OP_RELU: return relu(x);
        case GGML_UNARY_OP_SIGMOID: return mx::sigmoid(x);
        case GGML_UNARY_OP_GELU: return gelu(x);
        case GGML_UNARY_OP_GELU_QUICK: return gelu_quick(x);
        case GGML_UNARY_OP_GELU_ERF: return gelu_erf(x);
        case GGML_UNARY_OP_SILU: return silu(x);
        case GGML_UNARY_OP_HARDSWISH: return x * hard_sigmoid(x);
        case GGML_UNARY_OP_HARDSIGMOID: return hard_sigmoid(x);
        case GGML_UNARY_OP_EXP: return exponential(x);
        case GGML_UNARY_OP_EXPM1: return mx::expm1(x);
        case GGML_UNARY_OP_SOFTPLUS: return mx::where(x > array(20.0f), x, mx::log1p(mx::exp(x)));
        case GGML_UNARY_OP_XIELU: return xielu(x, t);
        case GGML_UNARY_OP_FLOOR: return mx::floor(x);
        case GGML_UNARY_OP_CEIL: return mx::ceil(x);
        case GGML_UNARY_OP_ROUND: return round_half_away(x);
        case GGML_UNARY_OP_TRUNC: return mx::where(x < array(0.0f), mx::ceil(x), mx::floor(x));
        case GGML_UNARY_OP_COUNT: break;
    }
    GGML_ABORT("no such unary op");
}

bool float_in_and_out(const ggml_tensor* t) { return is_float(t->type) && is_float(t->src[0]->type); }

void translate_unary(Builder& b, const ggml_tensor* t) {
    b.define(t, unary(ggml_get_unary_op(t), b.f32(t->src[0]), t));
}

template <Function function>
void translate(Builder& b, const ggml_tensor* t) {
    b.define(t, function(b.f32(t->src[0])));
}

array square(const array& x) { return mx::square(x); }
array square_root(const array& x) { return mx::sqrt(x); }
array logarithm(const array& x) { return mx::log(x); }
array sine(const array& x) { return mx::sin(x); }
array cosine(const array& x) { return mx::cos(x); }

void translate_scale(Builder& b, const ggml_tensor* t) {
    const array scaled = b.f32(t->src[0]) * array(float_param(t, 0));
    b.define(t, float_param(t, 1) == 0 ? scaled : scaled + array(float_param(t, 1)));
}
void translate_clamp(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::clip(b.f32(t->src[0]), array(float_param(t, 0)), array(float_param(t, 1))));
}
void translate_leaky_relu(Builder& b, const ggml_tensor* t) {
    const array x = b.f32(t->src[0]);
    b.define(t, mx::where(x > array(0.0f), x, x * array(float_param(t, 0))));
}

constexpr OpRow kRows[] = {
    {GGML_OP_UNARY, float_in_and_out, translate_unary},
    {GGML_OP_SQR, float_in_and_out, translate<square>},
    {GGML_OP_SQRT, float_in_and_out, translate<square_root>},
    {GGML_OP_LOG, float_in_and_out, translate<logarithm>},
    {GGML_OP_SIN, float_in_and_out, translate<sine>},
    {GGML_OP_COS, float_in_and_out, translate<cosine>},
    {GGML_OP_SCALE, float_in_and_out, translate_scale},
    {GGML_OP_CLAMP, float_in_and_out, translate_clamp},
    {GGML_OP_LEAKY_RELU, float_in_and_out, translate_leaky_relu},
};

}  // namespace

std::span<const OpRow> unary_ops() { return kRows; }

}  // namespace headrace::mlx
