#include <cmath>

#include "backends/mlx/ops/attention_mask.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {

array alibi_slopes(float max_bias, int heads) {
    const int power = 1 << static_cast<int>(std::floor(std::log2(static_cast<float>(heads))));
    const float even = std::pow(2.0f, -max_bias / static_cast<float>(power));
    const float odd = std::pow(2.0f, -max_bias / 2 / static_cast<float>(power));
    std::vector<float> slopes(heads);
    for (int h = 0; h < heads; ++h)
        slopes[h] = h < power ? std::pow(even, static_cast<float>(h + 1))
                              : std::pow(odd, static_cast<float>(2 * (h - power) + 1));
    return mx::reshape(constant(slopes), {1, heads, 1, 1});
}

array attention_mask(Builder& b, const ggml_tensor* mask, float max_bias, int rows, int heads, int batches) {
    array values = b.f32(mask);
    if (mask->ne[1] != rows)  // padded to a multiple that some kernels want
        values = mx::slice(values, {0, 0, 0, 0}, {values.shape(0), values.shape(1), rows, values.shape(3)});
    const auto times = [](std::int64_t extent, int wanted) {
        return extent > 1 ? static_cast<int>(wanted / extent) : 1;
    };
    const std::vector<int> repeats{times(mask->ne[3], batches), times(mask->ne[2], heads), 1, 1};
    if (repeats[0] != 1 || repeats[1] != 1) values = mx::tile(values, repeats);
    return max_bias > 0 ? values * alibi_slopes(max_bias, heads) : values;
}

namespace {

bool supports_soft_max(const ggml_tensor* t) {
    return is_float(t->src[0]->type) && is_float(t->type) && (!t->src[1] || is_float(t->src[1]->type)) &&
           (!t->src[2] || t->src[2]->type == GGML_TYPE_F32);
}

/// A sink takes part in the sum of each of its head's rows without being an output.
array softmax_with_sinks(const array& x, const array& sinks) {
    Shape column = x.shape();
    column[3] = 1;
    const array first = mx::broadcast_to(mx::reshape(sinks, {1, x.shape(1), 1, 1}), column);
    const array all = mx::softmax(mx::concatenate({first, x}, 3), 3, true);
    return mx::slice(all, {0, 0, 0, 1}, {x.shape(0), x.shape(1), x.shape(2), x.shape(3) + 1});
}

void translate_soft_max(Builder& b, const ggml_tensor* t) {
    array x = b.f32(t->src[0]) * array(float_param(t, 0));
    if (const ggml_tensor* mask = t->src[1])
        x = x + attention_mask(b, mask, float_param(t, 1), static_cast<int>(t->ne[1]),
                               static_cast<int>(t->ne[2]), static_cast<int>(t->ne[3]));
    b.define(t, t->src[2] ? softmax_with_sinks(x, b.get(t->src[2])) : mx::softmax(x, 3, true));
}

bool supports_soft_max_back(const ggml_tensor* t) {
    return t->src[0]->type == GGML_TYPE_F32 && t->src[1]->type == GGML_TYPE_F32 && float_param(t, 1) == 0;
}
void translate_soft_max_back(Builder& b, const ggml_tensor* t) {
    const array gradient = b.get(t->src[0]), y = b.get(t->src[1]);
    b.define(t, (gradient - mx::sum(gradient * y, 3, true)) * y * array(float_param(t, 0)));
}

/// Entries right of the diagonal that is n_past to the right.
array beyond_diagonal(const ggml_tensor* t) {
    const array rows = mx::reshape(mx::arange(0, static_cast<int>(t->ne[1]), 1, mx::int32), {-1, 1});
    const array columns = mx::reshape(mx::arange(0, static_cast<int>(t->ne[0]), 1, mx::int32), {1, -1});
    return columns > rows + array(int_param(t, 0));
}
bool float_in_and_out(const ggml_tensor* t) { return is_float(t->type) && is_float(t->src[0]->type); }
template <bool infinite>
void translate_diag_mask(Builder& b, const ggml_tensor* t) {
    const array fill(infinite ? -INFINITY : 0.0f);
    b.define(t, mx::where(beyond_diagonal(t), fill, b.f32(t->src[0])));
}

bool supports_cross_entropy(const ggml_tensor* t) {
    return t->src[0]->type == GGML_TYPE_F32 && t->src[1]->type == GGML_TYPE_F32;
}
array log_softmax(const array& x) { return x - mx::logsumexp(x, 3, true); }
void translate_cross_entropy(Builder& b, const ggml_tensor* t) {
    const ggml_tensor* logits = t->src[0];
    const array total = mx::sum(log_softmax(b.get(logits)) * b.get(t->src[1]));
    b.define(t, total * array(-1.0f / static_cast<float>(ggml_nrows(logits))));
}
bool supports_cross_entropy_back(const ggml_tensor* t) {
    return t->src[0]->type == GGML_TYPE_F32 && t->src[1]->type == GGML_TYPE_F32 &&
           t->src[2]->type == GGML_TYPE_F32;
}
void translate_cross_entropy_back(Builder& b, const ggml_tensor* t) {
    const ggml_tensor* logits = t->src[1];
    const array scale =
        mx::reshape(b.get(t->src[0]), {1, 1, 1, 1}) * array(1.0f / static_cast<float>(ggml_nrows(logits)));
    b.define(t, (mx::softmax(b.get(logits), 3, true) - b.get(t->src[2])) * scale);
}

constexpr OpRow kRows[] = {
    {GGML_OP_SOFT_MAX, supports_soft_max, translate_soft_max},
    {GGML_OP_SOFT_MAX_BACK, supports_soft_max_back, translate_soft_max_back},
    {GGML_OP_DIAG_MASK_INF, float_in_and_out, translate_diag_mask<true>},
    {GGML_OP_DIAG_MASK_ZERO, float_in_and_out, translate_diag_mask<false>},
    {GGML_OP_CROSS_ENTROPY_LOSS, supports_cross_entropy, translate_cross_entropy},
    {GGML_OP_CROSS_ENTROPY_LOSS_BACK, supports_cross_entropy_back, translate_cross_entropy_back},
};

}  // namespace

std::span<const OpRow> softmax_ops() { return kRows; }

}  // namespace headrace::mlx
