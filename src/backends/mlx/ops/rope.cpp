#include <algorithm>
#include <cmath>

#include "backends/mlx/host/row_loops.h"
#include "backends/mlx/ops/families.h"

namespace headrace::mlx {
namespace {

/// ggml_rope's parameters.
struct Rope {
    int rotated, mode, original_context, first;
    float base, scale, extrapolation, magnitude, beta_fast, beta_slow;
    int sections[4];

    explicit Rope(const ggml_tensor* t)
        : rotated(int_param(t, 1)),
          mode(int_param(t, 2)),
          original_context(int_param(t, 4)),
          first(int_param(t, 15)),
          base(float_param(t, 5)),
          scale(float_param(t, 6)),
          extrapolation(float_param(t, 7)),
          magnitude(float_param(t, 8)),
          beta_fast(float_param(t, 9)),
          beta_slow(float_param(t, 10)) {
        for (int i = 0; i < 4; ++i) sections[i] = int_param(t, 11 + i);
        if (extrapolation != 0) magnitude *= 1.0f + 0.1f * std::log(1.0f / scale);
    }

    bool has_sections() const { return mode & GGML_ROPE_TYPE_MROPE; }  // vision and interleaved, too
    bool is_vision() const { return mode == GGML_ROPE_TYPE_VISION; }
    int pairs() const { return is_vision() ? rotated : rotated / 2; }
};

/// YaRN: what each pair's angle is multiplied by, between interpolation and extrapolation.
std::vector<double> yarn_factors(const Rope& r) {
    std::vector<double> factors(r.pairs(), r.scale);
    if (r.extrapolation == 0) return factors;
    float bounds[2];
    ggml_rope_yarn_corr_dims(r.rotated, r.original_context, r.base, r.beta_fast, r.beta_slow, bounds);
    for (int i = 0; i < r.pairs(); ++i) {
        const float at = (static_cast<float>(i) - bounds[0]) / std::max(0.001f, bounds[1] - bounds[0]);
        const float ramp = (1 - std::clamp(at, 0.0f, 1.0f)) * r.extrapolation;
        factors[i] = r.scale * (1 - ramp) + ramp;
    }
    return factors;
}

/// Which of a token's four positions turns a pair, and by which power of the base.
struct Pair {
    int position = 0, power = 0;
};

int interleaved_position(const Rope& r, int sector) {
    for (const int p : {1, 2, 0})
        if (sector % 3 == p && sector < 3 * r.sections[p]) return p;
    return 3;
}

std::vector<Pair> pairs_of(const Rope& r) {
    std::vector<Pair> pairs(r.pairs());
    for (int i = 0; i < r.pairs(); ++i) pairs[i].power = i;
    if (!r.has_sections()) return pairs;
    const int* s = r.sections;
    const int total = s[0] + s[1] + s[2] + s[3];
    const int begins[4] = {0, s[0], s[0] + s[1], s[0] + s[1] + s[2]};
    for (int i = 0; i < r.pairs(); ++i) {
        const int sector = i % total;
        int position = 3;
        while (sector < begins[position]) --position;
        if (r.mode == GGML_ROPE_TYPE_IMROPE) position = interleaved_position(r, sector);
        pairs[i].position = position;
        if (r.is_vision()) pairs[i].power = sector - begins[position];
    }
    return pairs;
}

std::vector<float> speeds(const Rope& r, const std::vector<Pair>& pairs) {
    const std::vector<double> factors = yarn_factors(r);
    std::vector<float> result(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i)
        result[i] = static_cast<float>(
            std::pow(static_cast<double>(r.base), -2.0 * pairs[i].power / r.rotated) * factors[i]);
    return result;
}

array columns(const array& x, int begin, int end) {
    return mx::slice(x, {0, 0, 0, begin}, {x.shape(0), x.shape(1), x.shape(2), end});
}

/// The rotated part of x in MLX's own rope, which takes tokens as its batch and periods in place of speeds.
array fast_rope(Builder& b, const ggml_tensor* t, const Rope& r) {
    std::vector<float> periods = speeds(r, pairs_of(r));
    for (float& p : periods) p = 1 / p;
    array freqs = constant(periods);
    if (t->src[2]) freqs = freqs * mx::slice(mx::reshape(b.get(t->src[2]), {-1}), {0}, {r.rotated / 2});
    const int batches = static_cast<int>(t->ne[3]), tokens = static_cast<int>(t->ne[2]);
    const array x = mx::reshape(
        b.f32(t->src[0]), {batches * tokens, static_cast<int>(t->ne[1]), 1, static_cast<int>(t->ne[0])});
    array positions = mx::reshape(b.get(t->src[1]), {-1});
    if (batches > 1) positions = mx::tile(positions, {batches});
    const array turned =
        mx::fast::rope(x, r.rotated, !(r.mode & GGML_ROPE_TYPE_NEOX), std::nullopt, 1.0f, positions, freqs);
    if (r.magnitude == 1) return turned;
    const array scaled = columns(turned, 0, r.rotated) * array(r.magnitude);
    if (r.rotated == t->ne[0]) return scaled;
    return mx::concatenate({scaled, columns(turned, r.rotated, static_cast<int>(t->ne[0]))}, 3);
}

/// Angles of shape 1, tokens, 1, pairs.
array angles(Builder& b, const ggml_tensor* t, const Rope& r) {
    const std::vector<Pair> pairs = pairs_of(r);
    const int tokens = static_cast<int>(t->ne[2]), count = r.pairs();
    array positions = mx::reshape(b.f32(t->src[1]), {-1, tokens});
    if (r.has_sections()) {
        std::vector<int> which(count);
        std::transform(pairs.begin(), pairs.end(), which.begin(), [](const Pair& p) { return p.position; });
        positions = mx::take(positions, array(which.begin(), {count}, mx::int32), 0);
    }
    array speed = constant(speeds(r, pairs));
    if (t->src[2]) speed = speed / mx::slice(mx::reshape(b.get(t->src[2]), {-1}), {0}, {count});
    return mx::reshape(mx::transpose(positions) * speed, {1, tokens, 1, count});
}

/// Rotation spelled out, for what MLX's own does not know: sections, an offset, the inverse.
array composed_rope(Builder& b, const ggml_tensor* t, const Rope& r) {
    const array angle = angles(b, t, r);
    const array magnitude(r.magnitude);
    const array cosine = mx::cos(angle) * magnitude;
    const array sine = mx::sin(angle) * (t->op == GGML_OP_ROPE_BACK ? mx::negative(magnitude) : magnitude);
    const array x = b.f32(t->src[0]);
    const int width = static_cast<int>(t->ne[0]), count = r.pairs(), end = r.first + 2 * count;
    const array part = columns(x, r.first, end);
    const bool adjacent = r.mode == GGML_ROPE_TYPE_NORMAL;
    Shape split = part.shape();
    split[3] = adjacent ? count : 2;
    split.push_back(adjacent ? 2 : count);
    const int axis = adjacent ? 4 : 3;
    const std::vector<array> sides = mx::split(mx::reshape(part, split), 2, axis);
    const array u = mx::squeeze(sides[0], axis), v = mx::squeeze(sides[1], axis);
    const array turned =
        mx::reshape(mx::stack({u * cosine - v * sine, u * sine + v * cosine}, axis), part.shape());
    std::vector<array> parts;
    if (r.first > 0) parts.push_back(columns(x, 0, r.first));
    parts.push_back(turned);
    if (end < width) parts.push_back(columns(x, end, width));
    return parts.size() == 1 ? turned : mx::concatenate(parts, 3);
}

/// All of it as one loop, where MLX would compose it of many.
array looped_rope(Builder& b, const ggml_tensor* t, const Rope& r) {
    const std::vector<Pair> pairs = pairs_of(r);
    std::vector<int> kinds(pairs.size());
    std::transform(pairs.begin(), pairs.end(), kinds.begin(), [](const Pair& p) { return p.position; });
    array speed = constant(speeds(r, pairs));
    if (t->src[2]) speed = speed / mx::slice(mx::reshape(b.get(t->src[2]), {-1}), {0}, {r.pairs()});
    const array settings = constant({r.magnitude, r.mode == GGML_ROPE_TYPE_NORMAL ? 1.0f : 0.0f,
                                     static_cast<float>(r.first), t->op == GGML_OP_ROPE_BACK ? 1.0f : 0.0f});
    return host_loop(
        b.host(), loops::rope, 0, shape_of(t),
        {b.f32(t->src[0]), b.get(t->src[1]), speed, array(kinds.begin(), {r.pairs()}, mx::int32), settings});
}

bool supports_rope(const ggml_tensor* t) {
    const Rope r(t);
    const bool known = r.mode == GGML_ROPE_TYPE_NORMAL || r.mode == GGML_ROPE_TYPE_NEOX || r.has_sections();
    return known && is_float(t->type) && is_float(t->src[0]->type) && t->src[1]->type == GGML_TYPE_I32;
}
void translate_rope(Builder& b, const ggml_tensor* t) {
    const Rope r(t);
    if (mx::default_device() == mx::Device::cpu) return b.define(t, looped_rope(b, t, r));
    const bool plain = !r.has_sections() && r.first == 0 && t->op == GGML_OP_ROPE;
    b.define(t, plain ? fast_rope(b, t, r) : composed_rope(b, t, r));
}

constexpr OpRow kRows[] = {
    {GGML_OP_ROPE, supports_rope, translate_rope},
    {GGML_OP_ROPE_BACK, supports_rope, translate_rope},
};

}  // namespace

std::span<const OpRow> rope_ops() { return kRows; }

}  // namespace headrace::mlx
