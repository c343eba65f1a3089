#include "kernels/tensor/order_free_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/tensor/cached_keys.h"

namespace headrace::kernels {
namespace {

using testing::Cached;
using testing::CacheShape;
using testing::for_each_target;

constexpr std::uint16_t kSeen = 0, kNotSeen = 0xFC00;
const std::vector<CacheShape> kCacheShapes{{1, 16, 8, 1000, 128, 128}, {1, 4, 4, 1, 64, 64},
                                           {5, 6, 2, 129, 80, 48},     {17, 4, 1, 70, 64, 128},
                                           {3, 7, 7, 63, 16, 16},      {2, 8, 1, 200, 256, 512}};

template <typename Test>
void where_order_free_runs(const CacheShape& shape, Test test) {
    for_each_target([&] {
        if (has_order_free_attention(shape.width, shape.width_v)) test();
    });
}

void expect_near_exact(const Cached<std::uint16_t>& cached) {
    const std::vector<double> expected = cached.reference();
    for (const int threads : {1, 2, 3, 16}) {
        const std::vector<float> o = cached.run(threads, order_free_attention);
        ASSERT_EQ(o.size(), expected.size());
        for (std::size_t i = 0; i < o.size(); ++i)
            ASSERT_NEAR(o[i], expected[i], 2e-5 * (1 + std::abs(expected[i])))
                << i << ", " << threads << " threads";
    }
}

TEST(OrderFreeAttention, AgreesWithTheReference) {
    for (const CacheShape& shape : kCacheShapes) {
        Cached<std::uint16_t> cached(shape, 1);
        where_order_free_runs(shape, [&] { expect_near_exact(cached); });
        cached.softcap = 5;
        cached.sinks.assign(shape.heads, 1.5f);
        where_order_free_runs(shape, [&] { expect_near_exact(cached); });
    }
}

TEST(OrderFreeAttention, FollowsMasksOfCausalPromptsAndOfSequencesThatShareACache) {
    for (const CacheShape& shape : kCacheShapes) {
        Cached<std::uint16_t> cached(shape, 2);
        cached.hide([&](std::size_t t, std::size_t j) { return j + shape.tokens <= t + shape.keys; });
        where_order_free_runs(shape, [&] { expect_near_exact(cached); });
        cached.hide([&](std::size_t t, std::size_t j) { return j / 40 % shape.tokens == t; });
        where_order_free_runs(shape, [&] { expect_near_exact(cached); });
    }
}

TEST(OrderFreeAttention, TakesValuesOfAnySize) {
    const CacheShape shape{3, 4, 2, 90, 64, 64};
    for (const float size : {20.0f, 1000.0f, 30000.0f}) {
        Cached<std::uint16_t> cached(shape, 3);
        for (std::size_t i = 0; i < cached.v.size(); i += 5)
            cached.v[i] = testing::stored<std::uint16_t>(i % 2 ? size : -size);
        where_order_free_runs(shape, [&] {
            const std::vector<double> expected = cached.reference();
            const std::vector<float> o = cached.run(2, order_free_attention);
            for (std::size_t i = 0; i < o.size(); ++i) ASSERT_NEAR(o[i], expected[i], 3e-6 * size) << i;
        });
    }
}

TEST(OrderFreeAttention, LetsNothingOfHiddenKeysThrough) {
    const CacheShape shape{4, 2, 1, 100, 32, 32};
    Cached<std::uint16_t> cached(shape, 3);
    cached.hide([](std::size_t t, std::size_t j) { return j % 4 == t; });
    const auto expected = cached.reference();
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        for (const bool has_key : {false, true}) {  // what token 2 alone sees
            for (std::size_t i = 0; i < shape.width; ++i) {
                cached.v[50 * cached.row_v() + i] = testing::stored<std::uint16_t>(bad);
                if (has_key) cached.k[50 * cached.row() + i] = testing::stored<std::uint16_t>(bad);
            }
            where_order_free_runs(shape, [&] {
                const std::vector<float> o = cached.run(1, order_free_attention);
                for (std::size_t i = 0; i < o.size(); ++i)
                    if (i / (shape.heads * shape.width_v) == 2)
                        EXPECT_FALSE(std::isfinite(o[i])) << i;
                    else
                        EXPECT_NEAR(o[i], expected[i], 1e-4) << i;
            });
        }
    }
}

/// One sequence: the last of its tokens are queries, each of which sees the tokens up to itself.
struct Sequence {
    CacheShape shape;
    std::vector<float> q;
    std::vector<std::uint16_t> k, v;
};

std::vector<std::uint16_t> random_half_floats(std::size_t count, float size, std::mt19937& random) {
    std::normal_distribution<float> normal(0, size);
    std::vector<std::uint16_t> made(count);
    for (std::uint16_t& half : made) half = testing::stored<std::uint16_t>(normal(random));
    return made;
}

Sequence sequence_of(const CacheShape& shape, float largest) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    Sequence made{shape, std::vector<float>(shape.tokens * shape.heads * shape.width), {}, {}};
    for (float& x : made.q) x = normal(random);
    made.k = random_half_floats(shape.keys * shape.kv_heads * shape.width, 1, random);
    made.v = random_half_floats(shape.keys * shape.kv_heads * shape.width_v, 1, random);
    made.v[made.v.size() / 2] = testing::stored<std::uint16_t>(largest);
    return made;
}

/// What else is there: cells of the cache, the cell of each of the sequence's keys, and queries of others.
struct Surroundings {
    std::vector<std::size_t> cells;
    std::size_t cache, before, after;
    int threads;
    float other_values = 1;
};

using AttentionKernel = void (*)(const DecodeAttentionArgs<std::uint16_t>&, int, int);

/// The results of the sequence's queries.
std::vector<float> run_in(const Surroundings& around, const Sequence& own, AttentionKernel kernel) {
    std::mt19937 random(static_cast<unsigned>(around.cache * 7 + around.before));
    const CacheShape& s = own.shape;
    const std::size_t tokens = around.before + s.tokens + around.after, row = s.kv_heads * s.width,
                      row_v = s.kv_heads * s.width_v, row_q = s.heads * s.width;
    std::vector<std::uint16_t> k = random_half_floats(around.cache * row, 1, random),
                               v = random_half_floats(around.cache * row_v, around.other_values, random);
    std::vector<float> q(tokens * row_q, 0.7f), o(tokens * s.heads * s.width_v, -7);
    std::copy(own.q.begin(), own.q.end(), q.begin() + static_cast<std::ptrdiff_t>(around.before * row_q));
    std::vector<std::uint16_t> mask(tokens * around.cache, kNotSeen);
    for (std::size_t t = 0; t < tokens;
         ++t) {  // others see some cells that are theirs, and some that are not
        if (t >= around.before && t < around.before + s.tokens) continue;
        for (std::size_t j = t % 3; j < around.cache; j += 3) mask[t * around.cache + j] = kSeen;
    }
    for (std::size_t j = 0; j < s.keys; ++j) {
        const std::size_t cell = around.cells[j];
        std::copy_n(own.k.begin() + static_cast<std::ptrdiff_t>(j * row), row,
                    k.begin() + static_cast<std::ptrdiff_t>(cell * row));
        std::copy_n(own.v.begin() + static_cast<std::ptrdiff_t>(j * row_v), row_v,
                    v.begin() + static_cast<std::ptrdiff_t>(cell * row_v));
        for (std::size_t t = 0; t < s.tokens; ++t)
            if (j + s.tokens <= s.keys + t) mask[(around.before + t) * around.cache + cell] = kSeen;
    }
    DecodeAttentionArgs<std::uint16_t> g;
    const auto stride = [](std::size_t x) { return static_cast<std::ptrdiff_t>(x); };
    g.tokens = tokens, g.heads = s.heads, g.kv_heads = s.kv_heads, g.keys = around.cache;
    g.width = s.width, g.width_v = s.width_v, g.scale = 1 / std::sqrt(static_cast<float>(s.width));
    g.q = q.data(), g.q_token = stride(row_q), g.q_head = stride(s.width);
    g.k = k.data(), g.k_row = stride(row), g.k_head = stride(s.width);
    g.v = v.data(), g.v_row = stride(row_v), g.v_head = stride(s.width_v);
    g.mask = mask.data(), g.mask_token = stride(around.cache);
    g.o = o.data(), g.o_token = stride(s.heads * s.width_v), g.o_head = stride(s.width_v);
    for (int i = 0; i < around.threads; ++i) kernel(g, i, around.threads);
    const auto first = o.begin() + static_cast<std::ptrdiff_t>(around.before * s.heads * s.width_v);
    return {first, first + static_cast<std::ptrdiff_t>(s.tokens * s.heads * s.width_v)};
}

Surroundings alone(const Sequence& own) {
    std::vector<std::size_t> cells(own.shape.keys);
    std::iota(cells.begin(), cells.end(), 0);
    return {std::move(cells), own.shape.keys, 0, 0, 1};
}

Surroundings scattered(const Sequence& own, std::size_t others, std::size_t before, std::size_t after,
                       int threads) {
    std::vector<std::size_t> cells(own.shape.keys + others);
    std::iota(cells.begin(), cells.end(), 0);
    std::shuffle(cells.begin(), cells.end(), std::mt19937(static_cast<unsigned>(others + before)));
    const std::size_t cache = cells.size();
    cells.resize(own.shape.keys);
    return {std::move(cells), cache, before, after, threads};
}

const std::vector<CacheShape> kSequences{{1, 4, 2, 300, 64, 64},  {6, 4, 4, 41, 64, 32},
                                         {3, 6, 2, 130, 96, 96},  {9, 8, 2, 700, 32, 128},
                                         {5, 8, 1, 64, 128, 128}, {2, 2, 2, 2, 16, 16}};

TEST(OrderFreeAttention, GivesARowTheSameBitsWhereverItsKeysLieAndWhateverIsBesideIt) {
    for (const CacheShape& shape : kSequences)
        for (const float largest : {1.0f, 300.0f}) {
            const Sequence own = sequence_of(shape, largest);
            where_order_free_runs(shape, [&] {
                const std::vector<float> expected = run_in(alone(own), own, order_free_attention);
                for (const std::size_t others : {0, 5, 260})
                    for (const std::size_t before : {0, 1, 3, 6})
                        for (const int threads : {1, 2, 3, 7}) {
                            const auto around =
                                scattered(own, others, before, (before + others) % 4, threads);
                            ASSERT_EQ(run_in(around, own, order_free_attention), expected)
                                << others << " other cells, " << before << " queries before";
                        }
            });
        }
}

TEST(OrderFreeAttention, GivesARowTheSameBitsBesideLargeValuesOfOthers) {
    for (const CacheShape& shape : kSequences)
        for (const float largest : {1.0f, 100.0f}) {
            const Sequence own = sequence_of(shape, largest);
            where_order_free_runs(shape, [&] {
                const std::vector<float> expected = run_in(alone(own), own, order_free_attention);
                Surroundings around = scattered(own, 200, 3, 3, 2);
                for (const float size : {50.0f, 20000.0f}) {
                    around.other_values = size;
                    ASSERT_EQ(run_in(around, own, order_free_attention), expected) << size;
                }
            });
        }
}

TEST(OrderFreeAttention, GivesWhatTheUsualAttentionDoesNot) {
    const Sequence own = sequence_of({1, 4, 2, 300, 64, 64}, 1);
    where_order_free_runs(own.shape, [&] {
        EXPECT_NE(run_in(scattered(own, 260, 0, 0, 1), own, decode_attention),
                  run_in(alone(own), own, decode_attention));
    });
}

}  // namespace
}  // namespace headrace::kernels
