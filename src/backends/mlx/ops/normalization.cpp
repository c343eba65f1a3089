#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

bool float_in_and_out(const ggml_tensor* t) { return is_float(t->type) && is_float(t->src[0]->type); }
bool both_float(const ggml_tensor* t) { return float_in_and_out(t) && is_float(t->src[1]->type); }

void translate_norm(Builder& b, const ggml_tensor* t) {
    b.define(t, layer_norm(b.f32(t->src[0]), std::nullopt, std::nullopt, float_param(t, 0)));
}
void translate_rms_norm(Builder& b, const ggml_tensor* t) {
    b.define(t, rms_norm(b.f32(t->src[0]), std::nullopt, float_param(t, 0)));
}

array row_sum(const array& x) { return mx::sum(x, 3, true); }

void translate_rms_norm_back(Builder& b, const ggml_tensor* t) {
    const array gradient = b.f32(t->src[0]), x = b.f32(t->src[1]);
    const float eps = float_param(t, 0), columns = static_cast<float>(t->ne[0]);
    const array squares = row_sum(mx::square(x));
    const array share = mx::negative(row_sum(x * gradient)) / (squares + array(eps * columns));
    b.define(t, (gradient + x * share) * mx::rsqrt(squares / array(columns) + array(eps)));
}

void translate_l2_norm(Builder& b, const ggml_tensor* t) {
    const array x = b.f32(t->src[0]);
    b.define(t, x / mx::maximum(mx::sqrt(row_sum(mx::square(x))), array(float_param(t, 0))));
}

/// The last group may have fewer channels than the others: it is normalised by itself then.
array normalized(const array& x, float eps) {
    const array flat = mx::reshape(x, {x.shape(0), -1});
    return mx::reshape(layer_norm(flat, std::nullopt, std::nullopt, eps), x.shape());
}
void translate_group_norm(Builder& b, const ggml_tensor* t) {
    const array x = b.f32(t->src[0]);
    const int groups = int_param(t, 0), channels = static_cast<int>(t->ne[2]);
    const int size = (channels + groups - 1) / groups;
    std::vector<array> parts;
    for (int begin = 0; begin < channels; begin += size) {
        const int end = std::min(begin + size, channels);
        parts.push_back(normalized(mx::slice(x, {0, begin, 0, 0}, {x.shape(0), end, x.shape(2), x.shape(3)}),
                                   float_param(t, 1)));
    }
    b.define(t, parts.size() == 1 ? parts[0] : mx::concatenate(parts, 1));
}

constexpr OpRow kRows[] = {
    {GGML_OP_NORM, float_in_and_out, translate_norm},
    {GGML_OP_RMS_NORM, float_in_and_out, translate_rms_norm},
    {GGML_OP_RMS_NORM_BACK, both_float, translate_rms_norm_back},
    {GGML_OP_L2_NORM, float_in_and_out, translate_l2_norm},
    {GGML_OP_GROUP_NORM, float_in_and_out, translate_group_norm},
};

}  // namespace

std::span<const OpRow> normalization_ops() { return kRows; }

}  // namespace headrace::mlx
