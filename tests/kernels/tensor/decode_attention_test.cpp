#include "kernels/tensor/decode_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/half.h"
#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;

constexpr float kHidden = -std::numeric_limits<float>::infinity();

struct Shape {
    size_t tokens, heads, kv_heads, keys, width, width_v;
};

template <class Element>
Element stored(float x) {
    if constexpr (std::is_same_v<Element, float>)
        return x;
    else
        return float_to_half(x);
}
float number(float x) { return x; }
float number(uint16_t half) { return half_to_float(half); }

/// A cache as llama.cpp lays it out: keys of all heads in one row, here with a gap behind.
template <class Element>
class Cached {
public:
    Cached(const Shape& shape, unsigned seed) : shape_(shape), random_(seed) {
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
    std::vector<float> run(int threads) const {
        std::vector<float> o;
        const DecodeAttentionArgs<Element> g = arguments(o);
        for (int i = 0; i < threads; ++i) decode_attention(g, i, threads);
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

    const Shape shape_;
    std::mt19937 random_;
};

template <class Element>
void expect_right(const Cached<Element>& cached) {
    const std::vector<double> expected = cached.reference();
    for (const int threads : {1, 2, 3, 16}) {
        const std::vector<float> o = cached.run(threads);
        ASSERT_EQ(o.size(), expected.size());
        for (size_t i = 0; i < o.size(); ++i)
            ASSERT_NEAR(o[i], expected[i], 2e-5 * (1 + std::abs(expected[i])))
                << i << ", " << threads << " threads";
    }
}

/// On every target that has the kernel for these widths.
template <class Element, typename Test>
void where_it_runs(const Shape& shape, Test test) {
    for_each_target([&] {
        if (has_cached_attention<Element>(shape.width, shape.width_v)) test();
    });
}

template <class Element>
class CachedAttention : public ::testing::Test {};
using Elements = ::testing::Types<std::uint16_t, float>;
TYPED_TEST_SUITE(CachedAttention, Elements);

const std::vector<Shape> kShapes{{1, 16, 8, 1000, 128, 128}, {1, 4, 4, 1, 64, 64},  {5, 6, 2, 129, 80, 48},
                                 {17, 4, 1, 70, 64, 128},    {3, 7, 7, 63, 16, 16}, {2, 8, 1, 200, 256, 512}};

TYPED_TEST(CachedAttention, AgreesWithTheReference) {
    for (const Shape& shape : kShapes) {
        Cached<TypeParam> cached(shape, 1);
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
        cached.softcap = 5;
        cached.sinks.assign(shape.heads, 1.5f);
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
    }
}

TYPED_TEST(CachedAttention, FollowsMasksOfCausalPromptsAndOfSequencesThatShareACache) {
    for (const Shape& shape : kShapes) {
        Cached<TypeParam> cached(shape, 2);
        cached.hide([&](size_t t, size_t j) { return j + shape.tokens <= t + shape.keys; });
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
        cached.hide([&](size_t t, size_t j) { return j / 40 % shape.tokens == t; });  // some see nothing
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
    }
}

TYPED_TEST(CachedAttention, LetsNothingOfHiddenKeysThrough) {
    const Shape shape{4, 2, 1, 100, 32, 32};
    Cached<TypeParam> cached(shape, 3);
    cached.hide([](size_t t, size_t j) { return j % 4 == t; });
    const auto expected = cached.reference();
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        // What token 2 alone sees: first the value, then the key, too.
        for (const bool has_key : {false, true}) {
            for (size_t i = 0; i < shape.width; ++i) {
                cached.v[50 * cached.row_v() + i] = stored<TypeParam>(bad);
                if (has_key) cached.k[50 * cached.row() + i] = stored<TypeParam>(bad);
            }
            where_it_runs<TypeParam>(shape, [&] {
                const std::vector<float> o = cached.run(1);
                for (size_t i = 0; i < o.size(); ++i)
                    if (i / (shape.heads * shape.width_v) == 2)
                        EXPECT_TRUE(std::isnan(o[i]) || std::isinf(o[i])) << i;
                    else
                        EXPECT_NEAR(o[i], expected[i], 1e-4) << i;
            });
        }
    }
}

TYPED_TEST(CachedAttention, IsOfferedForWholeVectorsOnly) {
    for_each_target([] {
        const bool has_lanes = !has_cached_attention<TypeParam>(31, 31);  // vectors may be single numbers
        EXPECT_EQ(has_cached_attention<TypeParam>(30, 64), !has_lanes);
        EXPECT_FALSE(has_cached_attention<TypeParam>(64, 0));
        EXPECT_FALSE(has_cached_attention<TypeParam>(64, 1024));
    });
}

}  // namespace
}  // namespace headrace::kernels
