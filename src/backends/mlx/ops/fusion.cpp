#include "backends/mlx/ops/fusion.h"

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/host/fused.h"
#include "backends/mlx/ops/matmul.h"

namespace headrace::mlx {
namespace {

/// An operand that is the same for every row.
bool is_row(const ggml_tensor* t, std::int64_t columns) {
    return is_float(t->type) && t->ne[0] == columns && ggml_nrows(t) == 1;
}

/// A node of this part of the graph whose inputs still are what they were.
bool can_absorb(const Builder& b, const ggml_tensor* t, ggml_op op) {
    if (t->op != op || t->view_src || !b.find(t) || !b.is_constant(t)) return false;
    return b.is_constant(t->src[0]) && (!t->src[1] || b.is_constant(t->src[1]));
}

std::optional<array> scaled_norm(Builder& b, const ggml_tensor* product) {
    const ggml_tensor *norm = product->src[0], *scale = product->src[1];
    if (!is_row(scale, product->ne[0])) return std::nullopt;
    if (can_absorb(b, norm, GGML_OP_RMS_NORM))
        return rms_norm(b.f32(norm->src[0]), b.f32(scale), float_param(norm, 0));
    if (can_absorb(b, norm, GGML_OP_NORM))
        return layer_norm(b.f32(norm->src[0]), b.f32(scale), std::nullopt, float_param(norm, 0));
    return std::nullopt;
}

std::optional<array> shifted(Builder& b, const ggml_tensor* sum) {
    const ggml_tensor *before = sum->src[0], *shift = sum->src[1];
    if (!is_row(shift, sum->ne[0])) return std::nullopt;
    if (can_absorb(b, before, GGML_OP_MUL_MAT)) return biased_matmul(b, before, b.f32(shift));
    if (!can_absorb(b, before, GGML_OP_MUL)) return std::nullopt;
    const ggml_tensor *norm = before->src[0], *scale = before->src[1];
    if (!is_row(scale, sum->ne[0]) || !can_absorb(b, norm, GGML_OP_NORM)) return std::nullopt;
    return layer_norm(b.f32(norm->src[0]), b.f32(scale), b.f32(shift), float_param(norm, 0));
}

}  // namespace

std::optional<array> fuse(Builder& b, const ggml_tensor* t) {
    if (t->op == GGML_OP_MUL) return scaled_norm(b, t);
    if (t->op == GGML_OP_ADD) return shifted(b, t);
    return std::nullopt;
}

}  // namespace headrace::mlx
