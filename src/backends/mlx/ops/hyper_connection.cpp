#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

// Hyper-connections: a model carries several streams of its hidden state, and each layer mixes them. In ggml
// the operands are [values, streams, tokens], in MLX's order tokens, streams, values.

int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

bool all_f32(const ggml_tensor* t) {
    for (const ggml_tensor* source : t->src)
        if (source && source->type != GGML_TYPE_F32) return false;
    return true;
}

array divided_by_sums(const array& mix, int axis, float eps) {
    return mix / (mx::sum(mix, axis, true) + array(eps));
}

/// How each token mixes its streams, from and to: a softmax that is balanced until rows and columns sum to
/// one.
void translate_mix(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *mixes = t->src[0], *scale = t->src[1], *base = t->src[2];
    const float eps = float_param(t, 0);
    const int tokens = extent(t, 2), streams = extent(t, 0), before = 2 * streams;
    const auto own = [&](const array& all, int rows) {  // of a layer's other weights, which come first
        return mx::slice(mx::reshape(all, {rows, -1}), {0, before}, {rows, extent(mixes, 0)});
    };
    const array factor = mx::slice(mx::reshape(b.get(scale), {-1}), {2}, {3});
    const array scores = own(b.get(mixes), tokens) * factor + own(b.get(base), 1);
    constexpr int kFrom = 1, kTo = 2;
    array mix = mx::softmax(mx::reshape(scores, {tokens, streams, streams}), kTo, true) + array(eps);
    mix = divided_by_sums(mix, kFrom, eps);
    for (int i = 1; i < int_param(t, 1); ++i)
        mix = divided_by_sums(divided_by_sums(mix, kTo, eps), kFrom, eps);
    b.define(t, mix);
}

/// A layer's input: the weighted sum of the streams.
void translate_gather(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *x = t->src[0], *weights = t->src[1];
    const bool gated = int_param(t, 1) != 0;
    const int tokens = extent(x, 2), streams = extent(x, 1);
    const array w = mx::reshape(b.get(weights), {tokens, streams, -1});
    const array values = mx::reshape(b.get(x), {tokens, streams, -1});
    b.define(t, mx::sum(values * (gated ? mx::sigmoid(w) : w), 1, false) * array(float_param(t, 0)));
}

/// The streams after a layer: what it computed, spread over them, and the streams before it, mixed.
void translate_spread(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *residual = t->src[1], *mix = t->src[3];
    const int tokens = extent(t, 2), streams = extent(t, 1);
    const array computed = mx::reshape(b.get(t->src[0]), {tokens, 1, -1});
    const array shares = mx::reshape(b.get(t->src[2]), {tokens, streams, 1});
    array carried = mx::reshape(b.get(residual), {tokens, streams, -1});
    if (mix)
        carried =
            mx::matmul(mx::swapaxes(mx::reshape(b.get(mix), {tokens, streams, streams}), 1, 2), carried);
    b.define(t, computed * shares + carried);
}

constexpr OpRow kRows[] = {
    {GGML_OP_DSV4_HC_COMB, all_f32, translate_mix},
    {GGML_OP_DSV4_HC_PRE, all_f32, translate_gather},
    {GGML_OP_DSV4_HC_POST, all_f32, translate_spread},
};

}  // namespace

std::span<const OpRow> hyper_connection_ops() { return kRows; }

}  // namespace headrace::mlx
