#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

#include "backends/mlx/host/windows.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool float_in_and_out(const ggml_tensor* t) { return is_float(t->type) && is_float(t->src[0]->type); }
int extent(const ggml_tensor* t, int dimension) { return static_cast<int>(t->ne[dimension]); }

bool supports_pool(const ggml_tensor* t) {
    return float_in_and_out(t) &&
           (int_param(t, 0) == GGML_OP_POOL_MAX || int_param(t, 0) == GGML_OP_POOL_AVG);
}

array pool(const array& x, const std::vector<Window>& windows, bool maximum, const std::vector<int>& within) {
    const array all =
        sliding_windows(x, 4 - static_cast<int>(windows.size()), windows, maximum ? -FLT_MAX : 0);
    return maximum ? mx::max(all, within, false) : mx::sum(all, within, false);
}

void translate_pool_1d(Builder& b, const ggml_tensor* t) {
    const bool maximum = int_param(t, 0) == GGML_OP_POOL_MAX;
    const Window window{int_param(t, 1), int_param(t, 2), int_param(t, 3), 1, extent(t, 0)};
    const array x = b.f32(t->src[0]);
    const array result = pool(x, {window}, maximum, {4});
    if (maximum) return b.define(t, result);
    // Here ggml divides by the elements that a window has, in two dimensions by its size.
    const array present = pool(mx::ones({1, 1, 1, x.shape(3)}, mx::float32), {window}, false, {4});
    b.define(t, result / mx::maximum(present, array(1.0f)));
}

void translate_pool_2d(Builder& b, const ggml_tensor* t) {
    const bool maximum = int_param(t, 0) == GGML_OP_POOL_MAX;
    const Window columns{int_param(t, 1), int_param(t, 3), int_param(t, 5), 1, extent(t, 0)};
    const Window rows{int_param(t, 2), int_param(t, 4), int_param(t, 6), 1, extent(t, 1)};
    const array result = pool(b.f32(t->src[0]), {rows, columns}, maximum, {4, 5});
    b.define(t, maximum ? result : result / array(static_cast<float>(rows.size * columns.size)));
}

/// How one axis is resized: outputs x inputs.
struct Resize {
    int outputs, inputs;
    float factor, offset;

    float source(int i) const { return (static_cast<float>(i) + offset) / factor - offset; }
};

array matrix(const Resize& r, const std::function<void(int row, float* weights)>& fill) {
    std::vector<float> weights(static_cast<std::size_t>(r.outputs) * r.inputs, 0.0f);
    for (int i = 0; i < r.outputs; ++i) fill(i, weights.data() + static_cast<std::size_t>(i) * r.inputs);
    return mx::reshape(constant(weights), {r.outputs, r.inputs});
}

array linear_matrix(const Resize& r) {
    return matrix(r, [&](int i, float* weights) {
        const float at = r.source(i);
        const int below = static_cast<int>(std::floor(at));
        const int first = std::clamp(below, 0, r.inputs - 1), second = std::clamp(below + 1, 0, r.inputs - 1);
        const float share = std::clamp(at - static_cast<float>(first), 0.0f, 1.0f);
        weights[first] += 1 - share;
        weights[second] += share;
    });
}

/// A triangle as wide as the inputs that an output covers.
array antialiased_matrix(const Resize& r) {
    return matrix(r, [&](int i, float* weights) {
        const float support = std::max(1.0f, 1.0f / r.factor);
        const float at = (static_cast<float>(i) + r.offset) / r.factor;
        const int begin = std::max(static_cast<int>(at - support + r.offset), 0);
        const int end = std::min(static_cast<int>(at + support + r.offset), r.inputs);
        float total = 0;
        for (int k = begin; k < end; ++k) {
            weights[k] = std::max(1.0f - std::fabs((static_cast<float>(k) - at + r.offset) / support), 0.0f);
            total += weights[k];
        }
        for (int k = begin; k < end && total > 0; ++k) weights[k] /= total;
    });
}

array cubic_matrix(const Resize& r) {
    constexpr float a = -0.75f;
    const auto near = [](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    return matrix(r, [&](int i, float* weights) {
        const float at = r.source(i);
        const int below = static_cast<int>(std::floor(at));
        const float share = at - static_cast<float>(below);
        const float taps[4] = {far(share + 1), near(share), near(1 - share), far(2 - share)};
        for (int k = 0; k < 4; ++k) weights[std::clamp(below + k - 1, 0, r.inputs - 1)] += taps[k];
    });
}

array nearest_indices(int outputs, int inputs) {
    const float factor = static_cast<float>(outputs) / static_cast<float>(inputs);
    std::vector<int> from(outputs);
    for (int i = 0; i < outputs; ++i) from[i] = static_cast<int>(static_cast<float>(i) / factor);
    return array(from.begin(), {outputs}, mx::int32);
}

array resized(const array& x, const ggml_tensor* t, array (*weights)(const Resize&), bool align_corners) {
    const auto axis = [&](int d) {
        const int outputs = extent(t, d), inputs = extent(t->src[0], d);
        Resize r{outputs, inputs, static_cast<float>(outputs) / static_cast<float>(inputs), 0.5f};
        if (align_corners) {
            r.offset = 0;
            if (outputs > 1 && inputs > 1)
                r.factor = static_cast<float>(outputs - 1) / static_cast<float>(inputs - 1);
        }
        return weights(r);
    };
    return mx::matmul(mx::matmul(axis(1), x), mx::transpose(axis(0)));
}

void translate_upscale(Builder& b, const ggml_tensor* t) {
    const int flags = int_param(t, 0), mode = flags & 0xff;
    array x = b.f32(t->src[0]);
    // ggml interpolates along two dimensions and takes the nearest along the others.
    for (const int d : {0, 1, 2, 3})
        if ((d > 1 || mode == GGML_SCALE_MODE_NEAREST) && t->ne[d] != t->src[0]->ne[d])
            x = mx::take(x, nearest_indices(extent(t, d), extent(t->src[0], d)), axis_of(d));
    if (mode == GGML_SCALE_MODE_NEAREST) return b.define(t, x);
    const auto weights = mode == GGML_SCALE_MODE_BICUBIC     ? cubic_matrix
                         : flags & GGML_SCALE_FLAG_ANTIALIAS ? antialiased_matrix
                                                             : linear_matrix;
    b.define(t, resized(x, t, weights, flags & GGML_SCALE_FLAG_ALIGN_CORNERS));
}
bool supports_upscale(const ggml_tensor* t) {
    const int mode = int_param(t, 0) & 0xff;
    return float_in_and_out(t) && (mode == GGML_SCALE_MODE_NEAREST || mode == GGML_SCALE_MODE_BILINEAR ||
                                   mode == GGML_SCALE_MODE_BICUBIC);
}

/// Entry (i, k) is the row that stands for the distance of a query at i from a key at k.
bool supports_get_rel_pos(const ggml_tensor* t) {
    return t->type == GGML_TYPE_F16 && t->src[0]->type == GGML_TYPE_F16;
}
void translate_get_rel_pos(Builder& b, const ggml_tensor* t) {
    const int size = extent(t, 1);
    const array query = mx::reshape(mx::arange(0, size, 1, mx::int32), {size, 1});
    const array key = mx::reshape(mx::arange(0, size, 1, mx::int32), {1, size});
    const array rows = mx::reshape(b.get(t->src[0]), {-1, extent(t, 0)});
    b.define(t, mx::take(rows, query - key + array(size - 1), 0));
}

/// Scores of an image's patches, whose keys lie in rows and columns, get a term for either.
bool supports_add_rel_pos(const ggml_tensor* t) {
    return t->type == GGML_TYPE_F32 && t->src[0]->type == GGML_TYPE_F32;
}
void translate_add_rel_pos(Builder& b, const ggml_tensor* t) {
    const int size = extent(t->src[1], 0);
    const array scores = mx::reshape(b.get(t->src[0]), {-1, size, size});
    const array of_columns = mx::reshape(b.get(t->src[1]), {-1, 1, size});
    const array of_rows = mx::reshape(b.get(t->src[2]), {-1, size, 1});
    b.define(t, scores + of_columns + of_rows);
}

constexpr OpRow kRows[] = {
    {GGML_OP_POOL_1D, supports_pool, translate_pool_1d},
    {GGML_OP_POOL_2D, supports_pool, translate_pool_2d},
    {GGML_OP_UPSCALE, supports_upscale, translate_upscale},
    {GGML_OP_GET_REL_POS, supports_get_rel_pos, translate_get_rel_pos},
    {GGML_OP_ADD_REL_POS, supports_add_rel_pos, translate_add_rel_pos},
};

}  // namespace

std::span<const OpRow> image_ops() { return kRows; }

}  // namespace headrace::mlx
