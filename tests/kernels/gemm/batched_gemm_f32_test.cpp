#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Matrix;

// One product with rows apart by a gap, compared with the sum in double precision.
void expect_product(size_t m, size_t n, size_t k, bool transposed, float scale, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << m << "x" << n << "x" << k << (transposed ? " transposed" : "") << " threads " << nth);
    const Matrix a(m, k, 1, 1), b = transposed ? Matrix(n, k, 3, 2) : Matrix(k, n, 3, 2);
    Matrix c(m, n, 2, 3);
    BatchedGemmArgs g;
    g.m = m, g.n = n, g.k = k, g.scale = scale;
    g.a = a.data(), g.lda = a.stride;
    g.b = b.data(), g.ldb = b.stride, g.b_transposed = transposed;
    g.c = c.data(), g.ldc = c.stride;
    for (int ith = 0; ith < nth; ++ith) batched_gemm_f32(g, ith, nth);
    for (size_t i = 0; i < m; ++i) {
        for (size_t j = 0; j < n; ++j) {
            double sum = 0, magnitude = 1;
            for (size_t l = 0; l < k; ++l) {
                const double product = double(a.at(i, l)) * (transposed ? b.at(j, l) : b.at(l, j));
                sum += product, magnitude += std::abs(product);
            }
            ASSERT_NEAR(c.at(i, j), sum * scale, (1e-6 + 4e-7 * magnitude) * std::abs(scale))
                << "at " << i << ", " << j;
        }
    }
    ASSERT_TRUE(c.gaps_untouched());
}

TEST(BatchedGemmF32, MatchesDoubleReferenceOverOddSizes) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t m : {1, 2, 3, 7, 14, 40})
            for (size_t n : {1, 3, 8, 16, 31, 64, 67, 130})
                for (size_t k : {1, 5, 16, 33, 64})
                    for (bool transposed : {false, true})
                        expect_product(m, n, k, transposed, turn % 3 ? 1.0f : -0.125f,
                                       testing::thread_count(turn)),
                            ++turn;
    });
}

TEST(BatchedGemmF32, ContinuesSumsAcrossDepthSlices) {
    for_each_target([] {
        for (size_t m : {1, 9})
            for (bool transposed : {false, true}) expect_product(m, 70, 777, transposed, 0.5f, 2);
    });
}

TEST(BatchedGemmF32, WritesZeroWhenDepthIsZero) {
    std::vector<float> c(6, -1);
    BatchedGemmArgs g;
    g.m = 2, g.n = 3, g.c = c.data(), g.ldc = 3;
    for_each_target([&] {
        std::fill(c.begin(), c.end(), -1.0f);
        for (bool transposed : {false, true}) {
            g.b_transposed = transposed;
            batched_gemm_f32(g, 0, 1);
            EXPECT_EQ(c, std::vector<float>(6, 0.0f));
        }
    });
}

// Attention scores of [batch][sequence][head][depth] tensors: three heads of queries share one head of keys.
TEST(BatchedGemmF32, FollowsStridesOfThreeBatchDimensions) {
    const size_t batches = 2, key_heads = 2, group = 3, sequence = 9, depth = 20, heads = key_heads * group;
    const std::vector<float> q = testing::random_floats(batches * sequence * heads * depth, 1);
    const std::vector<float> keys = testing::random_floats(batches * sequence * key_heads * depth, 2);
    std::vector<float> scores(batches * heads * sequence * sequence);
    BatchedGemmArgs g;
    g.batch[0] = batches, g.batch[1] = key_heads, g.batch[2] = group;
    g.m = sequence, g.n = sequence, g.k = depth, g.b_transposed = true, g.scale = 0.25f;
    g.a = q.data(), g.lda = heads * depth;
    g.a_batch[0] = sequence * heads * depth, g.a_batch[1] = group * depth, g.a_batch[2] = depth;
    g.b = keys.data(), g.ldb = key_heads * depth;
    g.b_batch[0] = sequence * key_heads * depth, g.b_batch[1] = depth, g.b_batch[2] = 0;
    g.c = scores.data(), g.ldc = sequence;
    g.c_batch[0] = heads * sequence * sequence, g.c_batch[1] = group * sequence * sequence,
    g.c_batch[2] = sequence * sequence;
    for_each_target([&] {
        for (int nth : testing::kThreadCounts) {
            std::fill(scores.begin(), scores.end(), NAN);
            for (int ith = 0; ith < nth; ++ith) batched_gemm_f32(g, ith, nth);
            for (size_t b = 0; b < batches; ++b)
                for (size_t h = 0; h < heads; ++h)
                    for (size_t i = 0; i < sequence; ++i)
                        for (size_t j = 0; j < sequence; ++j) {
                            double sum = 0;
                            for (size_t l = 0; l < depth; ++l)
                                sum += double(q[((b * sequence + i) * heads + h) * depth + l]) *
                                       keys[((b * sequence + j) * key_heads + h / group) * depth + l];
                            ASSERT_NEAR(scores[((b * heads + h) * sequence + i) * sequence + j], sum / 4,
                                        4e-6);
                        }
        }
    });
}

TEST(BatchedGemmF32, CarriesNanToItsRowOnly) {
    std::vector<float> a = testing::random_floats(4 * 8, 1), b = testing::random_floats(8 * 20, 2), c(4 * 20);
    a[8 + 5] = NAN;
    BatchedGemmArgs g;
    g.m = 4, g.n = 20, g.k = 8, g.a = a.data(), g.lda = 8, g.b = b.data(), g.c = c.data(), g.ldc = 20;
    for_each_target([&] {
        for (bool transposed : {false, true}) {
            g.b_transposed = transposed, g.ldb = transposed ? 8 : 20;
            batched_gemm_f32(g, 0, 1);
            for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(std::isnan(c[i]), i / 20 == 1);
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
