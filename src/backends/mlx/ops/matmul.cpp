#include "backends/mlx/ops/matmul.h"

#include <algorithm>

#include "backends/mlx/arrays/checked_numbers.h"
#include "backends/mlx/arrays/layout.h"
#include "backends/mlx/host/gemv.h"
#include "backends/mlx/memory/packed_tensor.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

/// Rows of activations from which on it is faster to convert a quantised matrix once and multiply in f32.
constexpr std::int64_t kRowsOfPrompt = 16;

/// On the CPU, rows that share a matrix below which it is read as it is, once for each few of them. From here
/// on a product in f32 is faster.
constexpr std::int64_t kGemvRows = 8;

bool is_operand(const ggml_tensor* t) { return is_float(t->type) || is_quantized(t->type); }

array transposed(const array& matrix) { return mx::swapaxes(matrix, -1, -2); }

bool supports_mul_mat(const ggml_tensor* t) {
    const ggml_tensor *weights = t->src[0], *x = t->src[1];
    return is_operand(weights) && is_float(x->type) && is_float(t->type) &&
           weights->nb[0] == ggml_type_size(weights->type);
}

bool can_multiply_packed(const ggml_tensor* weights) {
    return is_packed(weights) && weights->ne[2] * weights->ne[3] == 1;
}

array quantized_matmul(const PackedArrays& w, const array& x) {
    return mx::quantized_matmul(x, w.codes, w.scales, w.biases, true, w.format->group, w.format->bits,
                                w.format->mode);
}

/// Heads of x that share a matrix become rows of one product.
array grouped_matmul(const array& weights, const array& x, const ggml_tensor* t) {
    const ggml_tensor *a = t->src[0], *b = t->src[1];
    const int a2 = static_cast<int>(a->ne[2]), a3 = static_cast<int>(a->ne[3]);
    const int r2 = static_cast<int>(b->ne[2]) / a2, r3 = static_cast<int>(b->ne[3]) / a3;
    const int rows = static_cast<int>(b->ne[1]), inner = static_cast<int>(b->ne[0]);
    const array left = mx::reshape(x, {a3, r3, a2, r2 * rows, inner});
    const array right = mx::reshape(weights, {a3, 1, a2, static_cast<int>(a->ne[1]), inner});
    return mx::matmul(left, transposed(right));
}

bool on_cpu() { return mx::default_device() == mx::Device::cpu; }

/// Whether the CPU's loop takes the matrices: floats, f32 copies, or codes with an affine format.
bool is_readable(const ggml_tensor* matrices) {
    return !is_packed(matrices) || quant_format(matrices->type)->is_affine();
}

bool is_gemv(const ggml_tensor* t) {
    const ggml_tensor *weights = t->src[0], *x = t->src[1];
    const bool in_codes = is_packed(weights);
    if (!on_cpu() || !is_readable(weights)) return false;
    return x->ne[1] * (x->ne[2] / weights->ne[2]) < (in_codes ? kRowsOfPrompt : kGemvRows);
}

StoredMatrices stored(Builder& b, const ggml_tensor* matrices) {
    if (!is_packed(matrices)) {
        const array values = is_float(matrices->type) ? b.get(matrices) : b.weight(matrices);
        return {nullptr, {b.find(root_of(matrices)) ? in_row_order(values) : values}};
    }
    const PackedArrays w = b.packed(matrices);
    StoredMatrices parts{w.format, {w.codes, w.scales}};
    if (w.biases) parts.parts.push_back(*w.biases);
    return parts;
}

bool uses_codes(const ggml_tensor* t) {
    return can_multiply_packed(t->src[0]) && ggml_nrows(t->src[1]) < kRowsOfPrompt;
}
bool same_batch(const ggml_tensor* t) {
    return t->src[0]->ne[2] == t->src[1]->ne[2] && t->src[0]->ne[3] == t->src[1]->ne[3];
}

array as_matrix(const array& part) { return mx::reshape(part, {part.shape(2), part.shape(3)}); }

array multiply_codes(const PackedArrays& w, const array& x) {
    PackedArrays matrix{w.format, as_matrix(w.codes), as_matrix(w.scales), std::nullopt};
    if (w.biases) matrix.biases = as_matrix(*w.biases);
    return quantized_matmul(matrix, x);
}

/// Values of a quantised matrix that are in memory at a time: for a vocabulary, all of them would take more
/// than the rest of the model.
constexpr std::int64_t kValuesAtOnce = 1 << 22;

/// A prompt times a repacked matrix, whose rows are converted for it a part at a time.
array multiply_converted(Builder& b, const ggml_tensor* weights, const array& x) {
    const int rows = static_cast<int>(weights->ne[1]);
    const int step = static_cast<int>(std::max<std::int64_t>(1, kValuesAtOnce / weights->ne[0]));
    std::vector<array> parts;
    for (int begin = 0; begin < rows; begin += step)
        parts.push_back(
            mx::matmul(x, transposed(b.converted_rows(weights, begin, std::min(begin + step, rows)))));
    return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 3);
}

void translate_mul_mat(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *weights = t->src[0], *x = t->src[1];
    if (is_gemv(t)) return b.define(t, gemv(b.host(), b.f32(x), stored(b, weights), shape_of(t)));
    if (can_multiply_packed(weights))
        return b.define(t, uses_codes(t) ? multiply_codes(b.packed(weights), b.f32(x))
                                         : multiply_converted(b, weights, b.f32(x)));
    const array w = b.weight(weights);
    b.define(t, same_batch(t) ? mx::matmul(b.f32(x), transposed(w)) : grouped_matmul(w, b.f32(x), t));
}

bool supports_mul_mat_id(const ggml_tensor* t) {
    const ggml_tensor *experts = t->src[0], *x = t->src[1];
    return is_operand(experts) && is_float(x->type) && is_float(t->type) && experts->ne[3] == 1 &&
           experts->nb[0] == ggml_type_size(experts->type) && t->src[2]->type == GGML_TYPE_I32;
}

void translate_mul_mat_id(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *experts = t->src[0], *x = t->src[1], *ids = t->src[2];
    const int count = static_cast<int>(experts->ne[2]), rows = static_cast<int>(experts->ne[1]);
    const int used = static_cast<int>(ids->ne[0]), tokens = static_cast<int>(ids->ne[1]);
    const int inner = static_cast<int>(x->ne[0]);
    const array numbers = mx::reshape(b.get(ids), {tokens, used});
    if (on_cpu() && is_readable(experts)) {
        const array rows_of_x = mx::reshape(b.f32(x), {tokens, static_cast<int>(x->ne[1]), inner});
        return b.define(t, chosen_product(b.host(), rows_of_x, numbers, stored(b, experts)));
    }
    const array chosen = mx::astype(checked_numbers(b.host(), numbers, count, t->op), mx::uint32);
    array left = mx::reshape(b.f32(x), {tokens, static_cast<int>(x->ne[1]), 1, inner});
    if (x->ne[1] != used) left = mx::broadcast_to(left, {tokens, used, 1, inner});
    if (is_packed(experts)) {
        const PackedArrays w = b.packed(experts);
        const auto stacked = [&](const array& part) { return mx::reshape(part, {count, rows, -1}); };
        std::optional<array> biases;
        if (w.biases) biases = stacked(*w.biases);
        b.define(t, mx::gather_qmm(left, stacked(w.codes), stacked(w.scales), biases, std::nullopt, chosen,
                                   true, w.format->group, w.format->bits, w.format->mode));
        return;
    }
    const array w = mx::reshape(b.weight(experts), {count, rows, inner});
    b.define(t, mx::gather_mm(left, transposed(w), std::nullopt, chosen));
}

/// dst[i1, i0] = sum over k of a[k, i0] * b[k, i1]; matrices of a are shared by several of b's.
bool supports_out_prod(const ggml_tensor* t) {
    return is_operand(t->src[0]) && is_float(t->src[1]->type) && is_float(t->type);
}
void translate_out_prod(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *first = t->src[0], *second = t->src[1];
    array a = b.f32(first);
    for (const int d : {2, 3})
        if (first->ne[d] != t->ne[d])
            a = mx::repeat(a, static_cast<int>(t->ne[d] / first->ne[d]), axis_of(d));
    b.define(t, mx::matmul(transposed(b.f32(second)), a));
}

constexpr OpRow kRows[] = {
    {GGML_OP_MUL_MAT, supports_mul_mat, translate_mul_mat},
    {GGML_OP_MUL_MAT_ID, supports_mul_mat_id, translate_mul_mat_id},
    {GGML_OP_OUT_PROD, supports_out_prod, translate_out_prod},
};

}  // namespace

std::span<const OpRow> matmul_ops() { return kRows; }

std::optional<array> biased_matmul(Builder& b, const ggml_tensor* t, const array& bias) {
    if (is_gemv(t) || can_multiply_packed(t->src[0]) || !same_batch(t)) return std::nullopt;
    return mx::addmm(bias, b.f32(t->src[1]), transposed(b.weight(t->src[0])));
}

}  // namespace headrace::mlx
