#include <cmath>

#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool float_in_and_out(const ggml_tensor* t) { return is_float(t->type) && is_float(t->src[0]->type); }
int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

/// Positions of an axis of `inputs` elements that goes on around in circles.
array wrapped_positions(int before, int inputs, int after) {
    std::vector<int> from(before + inputs + after);
    for (std::size_t i = 0; i < from.size(); ++i)
        from[i] = ((static_cast<int>(i) - before) % inputs + inputs) % inputs;
    return array(from.begin(), {static_cast<int>(from.size())}, mx::int32);
}
void translate_pad(Builder& b, const ggml_tensor* t) {
    array x = b.f32(t->src[0]);
    const bool circular = int_param(t, 8) != 0;
    for (int d = 0; d < 4; ++d) {
        const int before = int_param(t, 2 * d), after = int_param(t, 2 * d + 1);
        if (before == 0 && after == 0) continue;
        x = circular ? mx::take(x, wrapped_positions(before, extent(t->src[0], d), after), axis_of(d))
                     : mx::pad(x, std::vector<int>{axis_of(d)}, Shape{before}, Shape{after}, array(0.0f));
    }
    b.define(t, x);
}
void translate_pad_reflect(Builder& b, const ggml_tensor* t) {
    const int before = int_param(t, 0), inputs = extent(t->src[0], 0), after = int_param(t, 1);
    std::vector<int> from(before + inputs + after);
    for (int i = 0; i < static_cast<int>(from.size()); ++i) {
        const int at = std::abs(i - before);
        from[i] = at < inputs ? at : 2 * (inputs - 1) - at;
    }
    b.define(t,
             mx::take(b.f32(t->src[0]), array(from.begin(), {static_cast<int>(from.size())}, mx::int32), 3));
}
void translate_roll(Builder& b, const ggml_tensor* t) {
    array x = b.f32(t->src[0]);
    for (int d = 0; d < 4; ++d)
        if (int_param(t, d) != 0) x = mx::roll(x, int_param(t, d), axis_of(d));
    b.define(t, x);
}

struct Positions {
    array rows, columns;
};
Positions positions_of(const ggml_tensor* t) {
    return {mx::reshape(mx::arange(0, extent(t, 1), 1, mx::int32), {-1, 1}),
            mx::reshape(mx::arange(0, extent(t, 0), 1, mx::int32), {1, -1})};
}
array triangle(const ggml_tensor* t) {
    const auto [rows, columns] = positions_of(t);
    switch (int_param(t, 0)) {
        case GGML_TRI_TYPE_LOWER: return columns < rows;
        case GGML_TRI_TYPE_LOWER_DIAG: return columns <= rows;
        case GGML_TRI_TYPE_UPPER: return columns > rows;
        default: return columns >= rows;
    }
}
void translate_tri(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::where(triangle(t), b.f32(t->src[0]), array(0.0f)));
}
void translate_diag(Builder& b, const ggml_tensor* t) {
    const auto [rows, columns] = positions_of(t);
    b.define(t, mx::where(mx::equal(rows, columns), b.f32(t->src[0]), array(0.0f)));
}

bool makes_float(const ggml_tensor* t) { return is_float(t->type); }
void translate_arange(Builder& b, const ggml_tensor* t) {
    const array steps = mx::astype(mx::arange(0, extent(t, 0), 1, mx::int32), mx::float32);
    b.define(t, array(float_param(t, 0)) + steps * array(float_param(t, 2)));
}
void translate_fill(Builder& b, const ggml_tensor* t) {
    b.define(t, mx::full(shape_of(t), float_param(t, 0), mx::float32));
}

void translate_timestep_embedding(Builder& b, const ggml_tensor* t) {
    const int dimensions = int_param(t, 0), half = dimensions / 2;
    const float period = std::log(static_cast<float>(int_param(t, 1)));
    std::vector<float> speeds(half);
    for (int i = 0; i < half; ++i)
        speeds[i] = std::exp(-period * static_cast<float>(i) / static_cast<float>(half));
    const array angles = mx::reshape(b.f32(t->src[0]), {-1, 1}) * constant(speeds);
    const array both = mx::concatenate({mx::cos(angles), mx::sin(angles)}, 1);
    b.define(
        t, dimensions % 2 == 0 ? both : mx::pad(both, std::vector<int>{1}, Shape{0}, Shape{1}, array(0.0f)));
}

/// An image, whose channels are ggml's first dimension, in windows of w x w; those at the borders filled up.
void translate_win_part(Builder& b, const ggml_tensor* t) {
    const int across = int_param(t, 0), down = int_param(t, 1), w = int_param(t, 2);
    const ggml_tensor* from = t->src[0];
    const int channels = extent(from, 0);
    array x = mx::reshape(b.f32(from), {extent(from, 2), extent(from, 1), channels});
    x = mx::pad(x, std::vector<int>{0, 1}, Shape{0, 0},
                Shape{down * w - extent(from, 2), across * w - extent(from, 1)}, array(0.0f));
    b.define(t, mx::transpose(mx::reshape(x, {down, w, across, w, channels}), {0, 2, 1, 3, 4}));
}
void translate_win_unpart(Builder& b, const ggml_tensor* t) {
    const int w = int_param(t, 0), channels = extent(t, 0);
    const int across = (extent(t, 1) + w - 1) / w, down = (extent(t, 2) + w - 1) / w;
    const array windows = mx::reshape(b.f32(t->src[0]), {down, across, w, w, channels});
    const array image =
        mx::reshape(mx::transpose(windows, {0, 2, 1, 3, 4}), {down * w, across * w, channels});
    b.define(t, mx::slice(image, {0, 0, 0}, {extent(t, 2), extent(t, 1), channels}));
}

constexpr OpRow kRows[] = {
    {GGML_OP_PAD, float_in_and_out, translate_pad},
    {GGML_OP_PAD_REFLECT_1D, float_in_and_out, translate_pad_reflect},
    {GGML_OP_ROLL, float_in_and_out, translate_roll},
    {GGML_OP_TRI, float_in_and_out, translate_tri},
    {GGML_OP_DIAG, float_in_and_out, translate_diag},
    {GGML_OP_ARANGE, makes_float, translate_arange},
    {GGML_OP_FILL, makes_float, translate_fill},
    {GGML_OP_TIMESTEP_EMBEDDING, float_in_and_out, translate_timestep_embedding},
    {GGML_OP_WIN_PART, float_in_and_out, translate_win_part},
    {GGML_OP_WIN_UNPART, float_in_and_out, translate_win_unpart},
};

}  // namespace

std::span<const OpRow> shape_ops() { return kRows; }

}  // namespace headrace::mlx
