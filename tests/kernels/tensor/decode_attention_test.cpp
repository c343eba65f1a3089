#include "kernels/tensor/decode_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/tensor/cached_keys.h"

namespace headrace::kernels {
namespace {

using testing::Cached;
using testing::CacheShape;
using testing::for_each_target;
using testing::stored;

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
void where_it_runs(const CacheShape& shape, Test test) {
    for_each_target([&] {
        if (has_cached_attention<Element>(shape.width, shape.width_v)) test();
    });
}

template <class Element>
class CachedAttention : public ::testing::Test {};
using Elements = ::testing::Types<std::uint16_t, float>;
TYPED_TEST_SUITE(CachedAttention, Elements);

const std::vector<CacheShape> kShapes{{1, 16, 8, 1000, 128, 128}, {1, 4, 4, 1, 64, 64},
                                      {5, 6, 2, 129, 80, 48},     {17, 4, 1, 70, 64, 128},
                                      {3, 7, 7, 63, 16, 16},      {2, 8, 1, 200, 256, 512}};

TYPED_TEST(CachedAttention, AgreesWithTheReference) {
    for (const CacheShape& shape : kShapes) {
        Cached<TypeParam> cached(shape, 1);
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
        cached.softcap = 5;
        cached.sinks.assign(shape.heads, 1.5f);
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
    }
}

TYPED_TEST(CachedAttention, FollowsMasksOfCausalPromptsAndOfSequencesThatShareACache) {
    for (const CacheShape& shape : kShapes) {
        Cached<TypeParam> cached(shape, 2);
        cached.hide([&](size_t t, size_t j) { return j + shape.tokens <= t + shape.keys; });
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
        cached.hide([&](size_t t, size_t j) { return j / 40 % shape.tokens == t; });  // some see nothing
        where_it_runs<TypeParam>(shape, [&] { expect_right(cached); });
    }
}

TYPED_TEST(CachedAttention, LetsNothingOfHiddenKeysThrough) {
    const CacheShape shape{4, 2, 1, 100, 32, 32};
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
