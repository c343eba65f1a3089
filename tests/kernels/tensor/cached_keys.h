// A cache of keys and values with queries, and what attention makes of them in doubles.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/half.h"
#include "kernels/tensor/decode_attention.h"

namespace headrace::kernels::testing {

inline constexpr float kHidden = -std::numeric_limits<float>::infinity();

struct CacheShape {
    size_t tokens, heads, kv_heads, keys, width, width_v;
};

template <class Element>
Element stored(float x) {
    if constexpr (std::is_same_v<Element, float>)
        return x;
    else
        return float_to_half(x);
}
inline float number(float x) { return x; }
inline float number(uint16_t half) { return half_to_float(half); }

/// A cache as llama.cpp lays it out: keys of all heads in one row, here with a gap behind.
template <class Element>
class Cached {
public:
    Cached(const CacheShape& shape, unsigned seed) : shape_(shape), random_(seed) {
        q = floats(shape.tokens * shape.heads * shape.width, 1);
        k = elements(shape.keys * row());
        v = elements(shape.keys * row_v());
    }
    /// Whether a token sees a key; masks what it does not, and adds something to what it does.
    template <typename Sees>
    void hide(Sees sees) {
        mask.resize(shape_.tokens * shape_.keys);
        for (size_t t = 0; t < shape_.tokens; ++t)
            for (size_t j = 0; j < shape_.keys; ++j)
                mask[t * shape_.keys + j] =
                    stored<Element>(sees(t, j) ? 0.25f * static_cast<float>(j % 3) : kHidden);
    }
    DecodeAttentionArgs<Element> arguments(std::vector<float>& o) const {
        o.assign(shape_.tokens * shape_.heads * shape_.width_v, -7);
        DecodeAttentionArgs<Element> g;
        g.tokens = shape_.tokens, g.heads = shape_.heads, g.kv_heads = shape_.kv_heads, g.keys = shape_.keys;
        g.width = shape_.width, g.width_v = shape_.width_v;
        g.q = q.data(), g.q_token = signed_of(shape_.width),
        g.q_head = signed_of(shape_.tokens * shape_.width);
        g.k = k.data(), g.k_row = signed_of(row()), g.k_head = signed_of(shape_.width);
        g.v = v.data(), g.v_row = signed_of(row_v()), g.v_head = signed_of(shape_.width_v);
        if (!mask.empty()) g.mask = mask.data(), g.mask_token = signed_of(shape_.keys);
        if (!sinks.empty()) g.sinks = sinks.data();
        g.o = o.data(), g.o_token = signed_of(shape_.heads * shape_.width_v),
        g.o_head = signed_of(shape_.width_v);
        g.scale = 1.0f / std::sqrt(static_cast<float>(shape_.width));
        g.softcap = softcap;
        return g;
    }
    using Kernel = void (*)(const DecodeAttentionArgs<Element>& args, int ith, int nth);
    std::vector<float> run(int threads, Kernel kernel = decode_attention) const {
        std::vector<float> o;
        const DecodeAttentionArgs<Element> g = arguments(o);
        for (int i = 0; i < threads; ++i) kernel(g, i, threads);
        return o;
    }
    std::vector<double> reference() const {
        std::vector<double> o;
        const size_t group = shape_.heads / shape_.kv_heads;
        for (size_t t = 0; t < shape_.tokens; ++t)
            for (size_t h = 0; h < shape_.heads; ++h) add_reference(t, h, h / group, o);
        return o;
    }

    std::vector<float> q, sinks;
    std::vector<Element> k, v, mask;
    float softcap = 0;

    size_t row() const { return shape_.kv_heads * shape_.width + 8; }
    size_t row_v() const { return shape_.kv_heads * shape_.width_v + 8; }

private:
    static ptrdiff_t signed_of(size_t x) { return static_cast<ptrdiff_t>(x); }
    std::vector<float> floats(size_t count, float size) {
        std::normal_distribution<float> normal(0, size);
        std::vector<float> x(count);
        for (float& value : x) value = normal(random_);
        return x;
    }
    std::vector<Element> elements(size_t count) {
        std::vector<Element> x;
        for (const float value : floats(count, 2)) x.push_back(stored<Element>(value));
        return x;
    }
    void add_reference(size_t t, size_t h, size_t kv, std::vector<double>& o) const {
        std::vector<double> weights(shape_.keys, 0), sum(shape_.width_v, 0);
        double total = sinks.empty() ? 0 : std::exp(static_cast<double>(sinks[h]));
        for (size_t j = 0; j < shape_.keys; ++j) {
            const float m = mask.empty() ? 0 : number(mask[t * shape_.keys + j]);
            if (m == kHidden) continue;
            double s = 0;
            for (size_t i = 0; i < shape_.width; ++i)
                s += static_cast<double>(q[(h * shape_.tokens + t) * shape_.width + i]) *
                     number(k[j * row() + kv * shape_.width + i]);
            s /= std::sqrt(static_cast<double>(shape_.width));
            if (softcap != 0) s = softcap * std::tanh(s / softcap);
            total += weights[j] = std::exp(s + m);
            for (size_t i = 0; i < shape_.width_v; ++i)
                sum[i] += weights[j] * number(v[j * row_v() + kv * shape_.width_v + i]);
        }
        for (const double x : sum) o.push_back(total == 0 ? 0 : x / total);
    }

    const CacheShape shape_;
    std::mt19937 random_;
};

}  // namespace headrace::kernels::testing
