#include "kernels/tensor/attention_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::kInf;
using testing::random_floats;

struct AttentionCase {
    size_t heads = 2, kv_heads = 2, m = 3, n = 5, width = 8, width_v = 8;
    bool causal = false;
    // Rows and columns of the mask; 0: none.
    size_t mask_rows = 0, mask_columns = 0;
    bool rounds = false, zero_if_masked = true;
};

std::vector<double> by_hand(const AttentionCase& c, const AttentionArgs& g) {
    std::vector<double> out;
    for (size_t h = 0; h < c.heads; ++h)
        for (size_t i = 0; i < c.m; ++i) {
            const size_t kv = h * c.kv_heads / c.heads;
            std::vector<double> p(c.n);
            double most = -kInf, sum = 0;
            for (size_t j = 0; j < c.n; ++j) {
                for (size_t d = 0; d < c.width; ++d)
                    p[j] += double(g.q.data[h * g.q.head + i * g.q.row + d]) *
                            g.k.data[kv * g.k.head + j * g.k.row + d];
                p[j] *= g.scale;
                if (g.mask) p[j] += g.mask[i * g.mask_row + j * g.mask_column];
                if (c.causal && j > i) p[j] = -kInf;
                most = std::max(most, p[j]);
            }
            for (double& x : p) sum += x = most == -kInf ? 0 : std::exp(x - most);
            for (size_t d = 0; d < c.width_v; ++d) {
                double y = 0;
                for (size_t j = 0; j < c.n; ++j) y += p[j] * g.v.data[kv * g.v.head + j * g.v.row + d];
                out.push_back(sum == 0 ? 0 : y / sum);
            }
        }
    return out;
}

void expect_attention(const AttentionCase& c, int nth) {
    SCOPED_TRACE(::testing::Message() << c.heads << "/" << c.kv_heads << " heads, " << c.m << "x" << c.n
                                      << "x" << c.width << " causal " << c.causal << " mask " << c.mask_rows
                                      << "x" << c.mask_columns << " threads " << nth);
    // Rows are three floats longer than they need be, and heads two rows.
    const auto matrix = [](size_t heads, size_t rows, size_t width, unsigned seed,
                           std::vector<float>& storage) {
        const size_t row = width + 3, head = row * (rows + 2);
        storage = random_floats(heads * head, seed);
        return AttentionArgs::Matrix{storage.data(), 0, ptrdiff_t(head), ptrdiff_t(row)};
    };
    std::vector<float> q, k, v, mask = random_floats(c.mask_rows * c.mask_columns, 4);
    AttentionArgs g;
    g.heads = c.heads, g.kv_heads = c.kv_heads, g.m = c.m, g.n = c.n, g.width = c.width,
    g.width_v = c.width_v;
    g.q = matrix(c.heads, c.m, c.width, 1, q);
    g.k = matrix(c.kv_heads, c.n, c.width, 2, k);
    g.v = matrix(c.kv_heads, c.n, c.width_v, 3, v);
    g.causal = c.causal, g.scale = 0.7f, g.round_to_bf16 = c.rounds;
    g.zero_if_masked = c.zero_if_masked;
    if (!mask.empty()) {
        for (size_t i = 0; i < mask.size(); i += 3) mask[i] = -kInf;
        for (size_t j = 0; j < c.mask_columns; ++j) mask[mask.size() - 1 - j] = -kInf;  // the whole last row
        g.mask = mask.data();
        g.mask_row = c.mask_rows > 1 ? ptrdiff_t(c.mask_columns) : 0;
        g.mask_column = c.mask_columns > 1 ? 1 : 0;
    }
    constexpr float kGap = 12345;
    std::vector<float> o(c.heads * (c.m + 1) * (c.width_v + 1), kGap);
    g.o = o.data(), g.o_row = ptrdiff_t(c.width_v + 1), g.o_head = ptrdiff_t((c.m + 1) * (c.width_v + 1));
    for (int ith = 0; ith < nth; ++ith) attention_f32(g, ith, nth);

    const auto expected = by_hand(c, g);
    size_t at = 0;
    for (size_t h = 0; h < c.heads; ++h)
        for (size_t i = 0; i <= c.m; ++i)
            for (size_t d = 0; d <= c.width_v; ++d) {
                const float y = o[h * g.o_head + i * g.o_row + d];
                if (i < c.m && d < c.width_v)
                    ASSERT_NEAR(y, expected[at++], c.rounds ? 0.02 : 5e-6) << "head " << h << " query " << i;
                else
                    ASSERT_EQ(y, kGap);
            }
}

TEST(AttentionF32, MatchesDoublePrecisionForAnyShape) {
    for_each_target([] {
        for (const size_t m : {1, 2, 7, 64, 65, 130})
            for (const size_t n : {1, 5, 64, 100})
                for (const size_t width : {1, 8, 33})
                    for (const int nth : {1, 3})
                        expect_attention({.m = m, .n = n, .width = width, .width_v = width / 2 + 1}, nth);
        for (const size_t width_v : {64, 65, 130})
            expect_attention({.m = 50, .n = 70, .width_v = width_v}, 2);
    });
}

TEST(AttentionF32, IsZeroWhereThereAreNoKeys) {
    for_each_target([] {
        for (const size_t m : {1, 3, 70})
            for (const bool zero_if_masked : {false, true})
                expect_attention({.m = m, .n = 0, .zero_if_masked = zero_if_masked}, 2);
    });
}

TEST(AttentionF32, HidesLaterKeysWhenCausal) {
    for_each_target([] {
        for (const size_t m : {1, 5, 64, 70, 150})
            for (const size_t n : {1, 40, 150}) expect_attention({.m = m, .n = n, .causal = true}, 2);
    });
}

TEST(AttentionF32, AddsMasksThatBroadcastAndGivesZeroWhereNothingIsLeft) {
    for_each_target([] {
        for (const bool causal : {false, true})
            for (const size_t m : {1, 9, 66}) {
                expect_attention({.m = m, .n = 21, .causal = causal, .mask_rows = m, .mask_columns = 21}, 2);
                expect_attention({.m = m, .n = 21, .causal = causal, .mask_rows = 1, .mask_columns = 21}, 1);
                expect_attention({.m = m, .n = 21, .causal = causal, .mask_rows = m, .mask_columns = 1}, 1);
            }
    });
}

// Without queries and keys at the end, and with them, hidden.
void expect_hidden_keys_are_not_read(bool rounds) {
    constexpr size_t m = 70, n = 200, width = 16;
    for (const size_t shown : {1, 63, 130}) {
        std::vector<float> q = random_floats(m * width, 1), k = random_floats(n * width, 2),
                           v = random_floats(n * width, 3), mask(m * n, 0), short_o(m * width), o(m * width);
        AttentionArgs g;
        g.heads = g.kv_heads = 1, g.m = m, g.n = shown, g.width = g.width_v = width;
        g.q = {q.data(), 0, 0, width}, g.k = {k.data(), 0, 0, width}, g.v = {v.data(), 0, 0, width};
        g.o = short_o.data(), g.o_row = width, g.round_to_bf16 = rounds;
        attention_f32(g, 0, 1);
        std::fill(k.begin() + ptrdiff_t(shown * width), k.end(), std::nanf(""));
        std::fill(v.begin() + ptrdiff_t(shown * width), v.end(), std::nanf(""));
        for (size_t i = 0; i < m; ++i)
            std::fill(mask.begin() + ptrdiff_t(i * n + shown), mask.begin() + ptrdiff_t((i + 1) * n), -kInf);
        g.n = n, g.o = o.data();
        g.mask = mask.data(), g.mask_row = n, g.mask_column = 1;
        attention_f32(g, 0, 1);
        for (size_t i = 0; i < o.size(); ++i) ASSERT_NEAR(o[i], short_o[i], 1e-6) << shown;
    }
}

TEST(AttentionF32, DoesNotReadKeysAtTheEndThatAreHiddenFromAllQueries) {
    for_each_target([] { expect_hidden_keys_are_not_read(false); });
}

TEST(AttentionF32, LetsSeveralQueryHeadsReadOneHeadOfKeys) {
    for_each_target([] {
        expect_attention({.heads = 6, .kv_heads = 2, .m = 5, .n = 9}, 2);
        expect_attention({.heads = 3, .kv_heads = 1, .m = 1, .n = 90, .width = 64, .width_v = 64}, 2);
        for (const size_t m : {1, 2})  // as with a cache
            for (const size_t mask_rows : {size_t{1}, m})
                expect_attention({.heads = 12,
                                  .kv_heads = 2,
                                  .m = m,
                                  .n = 130,
                                  .width = 64,
                                  .width_v = 128,
                                  .mask_rows = mask_rows,
                                  .mask_columns = 130},
                                 2);
    });
}

// Blocks of queries see less or more of a head's keys than those before.
void expect_as_many_keys_as_any_query_sees(bool rounds) {
    const AttentionCase c{.heads = 2, .kv_heads = 1, .m = 250, .n = 200, .width = 8, .width_v = 72};
    std::vector<float> q = random_floats(c.heads * c.m * c.width, 1), k = random_floats(c.n * c.width, 2),
                       v = random_floats(c.n * c.width_v, 3), mask(c.m * c.n, 0),
                       o(c.heads * c.m * c.width_v);
    constexpr size_t kSeen[] = {130, 40, 199, 70, 1};
    for (size_t i = 0; i < c.m; ++i)
        std::fill(mask.begin() + ptrdiff_t(i * c.n + kSeen[i / 50]), mask.begin() + ptrdiff_t((i + 1) * c.n),
                  -kInf);
    AttentionArgs g;
    g.heads = c.heads, g.kv_heads = c.kv_heads, g.m = c.m, g.n = c.n;
    g.width = c.width, g.width_v = c.width_v, g.scale = 2, g.round_to_bf16 = rounds;
    g.q = {q.data(), 0, ptrdiff_t(c.m * c.width), ptrdiff_t(c.width)};
    g.k = {k.data(), 0, 0, ptrdiff_t(c.width)}, g.v = {v.data(), 0, 0, ptrdiff_t(c.width_v)};
    g.o = o.data(), g.o_head = ptrdiff_t(c.m * c.width_v), g.o_row = ptrdiff_t(c.width_v);
    g.mask = mask.data(), g.mask_row = ptrdiff_t(c.n), g.mask_column = 1;
    for (const int ith : {0, 1, 2}) attention_f32(g, ith, 3);
    const auto expected = by_hand(c, g);
    for (size_t i = 0; i < o.size(); ++i) ASSERT_NEAR(o[i], expected[i], rounds ? 0.02 : 5e-6) << i;
}

TEST(AttentionF32, ReadsAsManyKeysAsAnyQueryNearbySees) {
    for_each_target([] { expect_as_many_keys_as_any_query_sees(false); });
}

struct RoundedAttention : ::testing::Test {
    void SetUp() override {
        if (!has_bf16_gemm()) GTEST_SKIP() << "this processor does not multiply bf16";
    }
};

TEST_F(RoundedAttention, IsNearDoublePrecisionForAnyShape) {
    for (const bool causal : {false, true})
        for (const size_t m : {1, 3, 65, 130})
            for (const size_t n : {1, 5, 64, 101})
                for (const size_t width : {1, 8, 33})
                    expect_attention({.heads = 4,
                                      .kv_heads = width % 2 ? size_t{2} : size_t{4},
                                      .m = m,
                                      .n = n,
                                      .width = width,
                                      .width_v = 3 * width,
                                      .causal = causal,
                                      .rounds = true},
                                     2);
    for (const size_t m : {9, 66})
        expect_attention({.m = m, .n = 21, .mask_rows = m, .mask_columns = 21, .rounds = true}, 2);
}

TEST_F(RoundedAttention, DoesNotReadHiddenKeys) {
    expect_hidden_keys_are_not_read(true);
    expect_as_many_keys_as_any_query_sees(true);
}

// One of a pair of values may be hidden, and NaN.
TEST_F(RoundedAttention, KeepsWhatIsHiddenOutOfPairs) {
    constexpr size_t m = 100, n = 99, width = 8;
    const std::vector<float> q = random_floats(m * width, 1), k = random_floats(n * width, 2);
    std::vector<float> v = random_floats(n * width, 3), mask(m * n, 0), o(m * width);
    std::fill(v.begin() + ptrdiff_t(51 * width), v.end(), kInf);
    // The first block of queries sees all keys, the later ones an odd number.
    for (size_t i = 48; i < m; ++i)
        std::fill(mask.begin() + ptrdiff_t(i * n + 51), mask.begin() + ptrdiff_t((i + 1) * n), -kInf);
    AttentionArgs g;
    g.heads = g.kv_heads = 1, g.m = m, g.n = n, g.width = g.width_v = width, g.round_to_bf16 = true;
    g.q = {q.data(), 0, 0, width}, g.k = {k.data(), 0, 0, width}, g.v = {v.data(), 0, 0, width};
    g.o = o.data(), g.o_row = width, g.mask = mask.data(), g.mask_row = n, g.mask_column = 1;
    attention_f32(g, 0, 1);
    for (size_t i = 0; i < o.size(); ++i) ASSERT_EQ(std::isinf(o[i]), i < 48 * width) << i;
}

}  // namespace
}  // namespace headrace::kernels
