#include "backends/mlx/op_families.h"
#include "backends/mlx/windows.h"

namespace headrace::mlx {
namespace {

int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

bool takes_f32(const ggml_tensor* t) {
    return t->src[0]->type == GGML_TYPE_F32 && t->src[1]->type == GGML_TYPE_F32;
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

/// Solves A x = B for a lower triangular A by substitution, one row of all systems at a time.
bool supports_solve_tri(const ggml_tensor* t) { return takes_f32(t) && t->src[0]->ne[0] <= 64; }
void translate_solve_tri(Builder& b, const ggml_tensor* t) {
    const array a = b.get(t->src[0]), right = b.get(t->src[1]);
    const int n = extent(t->src[0], 0), columns = extent(t->src[1], 0);
    const int batches = a.shape(0), heads = a.shape(1);
    const auto row = [&](const array& m, int i, int width) {
        return mx::slice(m, {0, 0, i, 0}, {batches, heads, i + 1, width});
    };
    std::vector<array> solved;
    for (int i = 0; i < n; ++i) {
        array value = row(right, i, columns);
        if (i > 0) value = value - mx::matmul(row(a, i, i), mx::concatenate(solved, 2));
        solved.push_back(value / mx::slice(a, {0, 0, i, i}, {batches, heads, i + 1, i + 1}));
    }
    b.define(t, mx::concatenate(solved, 2));
}

constexpr OpRow kRows[] = {
    {GGML_OP_SSM_CONV, takes_f32, translate_ssm_conv},
    {GGML_OP_SOLVE_TRI, supports_solve_tri, translate_solve_tri},
};

}  // namespace

std::span<const OpRow> recurrent_ops() { return kRows; }

}  // namespace headrace::mlx
