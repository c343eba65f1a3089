#include "backends/mlx/arrays/checked_numbers.h"
#include "backends/mlx/host/recurrences.h"
#include "backends/mlx/host/windows.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

/// The first `count` operands are f32.
template <int count>
bool takes_f32(const ggml_tensor* t) {
    for (int i = 0; i < count; ++i)
        if (t->src[i]->type != GGML_TYPE_F32) return false;
    return true;
}

/// Each channel's signal with its own short filter.
void translate_ssm_conv(Builder& b, const ggml_tensor* t) {
    const ggml_tensor *signal = t->src[0], *filter = t->src[1];
    const Window window{extent(filter, 0), 1, 0, 1, extent(t, 1)};
    const array windows =
        sliding_windows(b.get(signal), 3, {window}, 0);  // 1, sequences, channels, tokens, taps
    const array taps = mx::reshape(b.get(filter), {1, 1, extent(filter, 1), 1, extent(filter, 0)});
    b.define(t, mx::swapaxes(mx::sum(windows * taps, 4, false), 2, 3));
}

/// An op that is the loop `function` over its first `count` operands.
template <HostFunction function, int count>
void translate_loop(Builder& b, const ggml_tensor* t) {
    std::vector<array> inputs;
    for (int i = 0; i < count; ++i) inputs.push_back(b.get(t->src[i]));
    b.define(t, host_loop(b.host(), function, int_param(t, 0), shape_of(t), inputs));
}

void translate_gated_linear_attention(Builder& b, const ggml_tensor* t) {
    std::vector<array> inputs;
    for (int i = 0; i < 5; ++i) inputs.push_back(b.get(t->src[i]));
    inputs[2] = inputs[2] * array(float_param(t, 0));
    b.define(t, host_loop(b.host(), gated_linear_attention, 0, shape_of(t), inputs));
}

bool supports_ssm_scan(const ggml_tensor* t) { return takes_f32<6>(t) && t->src[6]->type == GGML_TYPE_I32; }
void translate_ssm_scan(Builder& b, const ggml_tensor* t) {
    // The sequences' states lie anywhere among those of all sequences.
    const array numbers = checked_numbers(b.host(), b.get(t->src[6]), t->src[0]->ne[3], t->op);
    std::vector<array> inputs{mx::take(b.get(t->src[0]), mx::reshape(numbers, {-1}), 0)};
    for (int i = 1; i < 6; ++i) inputs.push_back(b.get(t->src[i]));
    b.define(t, host_loop(b.host(), ssm_scan, int_param(t, 0), shape_of(t), inputs));
}

constexpr OpRow kRows[] = {
    {GGML_OP_SSM_CONV, takes_f32<2>, translate_ssm_conv},
    {GGML_OP_SSM_SCAN, supports_ssm_scan, translate_ssm_scan},
    {GGML_OP_RWKV_WKV6, takes_f32<6>, translate_loop<rwkv_wkv6, 6>},
    {GGML_OP_RWKV_WKV7, takes_f32<7>, translate_loop<rwkv_wkv7, 7>},
    {GGML_OP_GATED_LINEAR_ATTN, takes_f32<5>, translate_gated_linear_attention},
    {GGML_OP_GATED_DELTA_NET, takes_f32<6>, translate_loop<gated_delta_net, 6>},
    {GGML_OP_SOLVE_TRI, takes_f32<2>, translate_loop<solve_triangular, 2>},
};

}  // namespace

std::span<const OpRow> recurrent_ops() { return kRows; }

}  // namespace headrace::mlx
