#include "kernels/gemm/block_gemm_int8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/each_target.h"
#include "kernels/gemm/block_gemm_f32.h"
#include "kernels/gemm/block_product.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::BlockCase;
using testing::BlockProduct;
using testing::BlockWeights;
using testing::Guarded;
using testing::Matrix;

constexpr BlockFormat kFormats[] = {BlockFormat::q8_0,    BlockFormat::q4_0,     BlockFormat::q4_1,
                                    BlockFormat::q4_k,    BlockFormat::q8_0_f32, BlockFormat::q4_0_f32,
                                    BlockFormat::q4_1_f32};

class BlockGemmInt8 : public ::testing::Test {
protected:
    void SetUp() override {
        if (!has_block_gemm_int8(BlockFormat::q8_0))
            GTEST_SKIP() << "this CPU has neither AVX2 nor 64-bit NEON";
    }
};

// Floats, so that pages can guard them.
std::vector<float> packed_floats(const BlockWeights& b, size_t n, size_t k) {
    const size_t bytes = packed_blocks_bytes(b.format, k, n);
    void* aligned = std::aligned_alloc(kPackedAlignment, (bytes + 63) / 64 * 64);
    pack_blocks(b.format, b.blocks.data(), k, n, static_cast<std::byte*>(aligned));
    std::vector<float> copy(bytes / sizeof(float));
    std::memcpy(copy.data(), aligned, bytes);
    std::free(aligned);
    return copy;
}

// Each 32 elements to whole multiples of a 127th of the largest.
std::vector<float> rounded(const Matrix& a) {
    std::vector<float> values(a.rows * a.cols);
    for (size_t r = 0; r < a.rows; ++r)
        for (size_t g = 0; g < a.cols; g += 32) {
            float largest = 0;
            for (size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(a.at(r, g + i)));
            const float scale = largest / 127.0f, inverse = scale > 0 ? 1.0f / scale : 0.0f;
            for (size_t i = 0; i < 32; ++i)
                values[r * a.cols + g + i] = scale * std::nearbyintf(a.at(r, g + i) * inverse);
        }
    return values;
}

void expect_product(const BlockCase& t, BlockFormat format, int nth, Guarded::Side side, int variant) {
    SCOPED_TRACE(::testing::Message()
                 << t.m << "x" << t.n << "x" << t.k << " " << name_of(format) << " threads " << nth);
    BlockProduct product(t);
    const BlockWeights b(format, t.n, t.k, 2, -2, 3);
    const std::vector<float> a_rounded = rounded(product.a);
    Guarded packed(packed_floats(b, t.n, t.k), side), guarded_bias(product.bias, side);
    const GemmArgs g = product.args(guarded_bias.data());
    for (int ith = 0; ith < nth; ++ith)
        block_gemm_int8_in(variant, g, format, reinterpret_cast<const std::byte*>(packed.data()), ith, nth);
    product.expect_result([&](size_t i, size_t l) { return a_rounded[i * t.k + l]; }, b.values);
}

// For every variant of the int8 dot product, on every instruction set.
template <class Body>
void for_each_int8_variant(Body body) {
    testing::for_each_target([&] {
        for (int variant = 0; variant < int8_variants(); ++variant) {
            SCOPED_TRACE(::testing::Message() << "variant " << variant);
            body(variant);
        }
    });
}

TEST_F(BlockGemmInt8, MultipliesByTheExactValuesOfTheBlocks) {
    for_each_int8_variant([](int variant) {
        size_t turn = 0;
        for (const BlockFormat format : kFormats)
            for (const BlockCase& t : std::initializer_list<BlockCase>{{1, 1, 32},
                                                                       {1, 70, 64},
                                                                       {5, 64, 256},
                                                                       {7, 65, 288},
                                                                       {13, 16, 512},
                                                                       {200, 130, 96},
                                                                       {6, 3, 1056},
                                                                       {400, 20, 544},
                                                                       {800, 70, 64},
                                                                       {2, 63, 6144}}) {
                for (Guarded::Side side : {Guarded::Side::front, Guarded::Side::back})
                    expect_product(t.fitting(format), format, testing::thread_count(turn), side, variant);
                ++turn;
            }
    });
}

TEST_F(BlockGemmInt8, AddsBiasActivationAndResidual) {
    for_each_int8_variant([](int variant) {
        for (const BlockFormat format : kFormats)
            for (int nth : testing::kThreadCounts)
                expect_product({17, 100, 512, Activation::relu, true, true}, format, nth, Guarded::Side::back,
                               variant);
    });
}

TEST_F(BlockGemmInt8, StaysCloseToTheProductOfUnroundedRows) {
    constexpr size_t m = 9, n = 40, k = 512;
    const Matrix a(m, k, 0, 1);
    const BlockWeights b(kFormats[0], n, k, 2, -2, 3);
    const std::vector<float> packed = packed_floats(b, n, k);
    Matrix c(m, n, 0, 3), exact(m, n, 0, 3);
    GemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a.data(), g.lda = a.stride;
    g.c = c.data(), g.ldc = c.stride;
    block_gemm_int8(g, b.format, reinterpret_cast<const std::byte*>(packed.data()), 0, 1);
    g.c = exact.data();
    block_gemm_f32(g, b.format, b.blocks.data(), 0, 1);
    double error = 0, size = 0;
    for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j)
            error += std::pow(c.at(i, j) - exact.at(i, j), 2), size += std::pow(exact.at(i, j), 2);
    EXPECT_LT(std::sqrt(error / size), 0.005);
    EXPECT_GT(error, 0) << "nothing was rounded";
}

TEST_F(BlockGemmInt8, GivesNaNForRowsWithNaNOrInfinityAndLeavesTheOthersAlone) {
    constexpr size_t m = 8, n = 20, k = 96;
    for (const BlockFormat format : {kFormats[0], kFormats[1], kFormats[2]}) {
        const BlockWeights b(format, n, k, 2, -2, 3);
        const std::vector<float> packed = packed_floats(b, n, k);
        Matrix a(m, k, 0, 1), clean(m, k, 0, 1);
        a.at(2, 40) = std::numeric_limits<float>::quiet_NaN();
        a.at(5, 95) = -std::numeric_limits<float>::infinity();
        Matrix c(m, n, 0, 3), expected(m, n, 0, 3);
        const auto run = [&](const Matrix& from, Matrix& to, int variant) {
            GemmArgs g;
            g.m = m, g.n = n, g.k = k;
            g.a = from.data(), g.lda = from.stride;
            g.c = to.data(), g.ldc = to.stride;
            block_gemm_int8_in(variant, g, format, reinterpret_cast<const std::byte*>(packed.data()), 0, 1);
        };
        for_each_int8_variant([&](int variant) {
            run(a, c, variant);
            run(clean, expected, variant);
            for (size_t i = 0; i < m; ++i)
                for (size_t j = 0; j < n; ++j)
                    if (i == 2 || i == 5)
                        EXPECT_TRUE(std::isnan(c.at(i, j))) << i << ", " << j;
                    else
                        EXPECT_EQ(c.at(i, j), expected.at(i, j)) << i << ", " << j;
        });
    }
}

// The largest codes of both sides: sums in 16 bits must hold them.
TEST_F(BlockGemmInt8, HoldsTheLargestCodes) {
    constexpr size_t m = 7, n = 24, k = 64;
    for (const BlockFormat format : {kFormats[0], kFormats[1]}) {
        BlockWeights b(format, n, k, 2);
        const size_t block = blocks_bytes(format, kBlockElements);
        const std::byte largest{format == BlockFormat::q8_0 ? uint8_t{0x7F} : uint8_t{0xFF}};
        for (size_t at = 0; at < b.blocks.size(); ++at)
            if (at % block >= 2) b.blocks[at] = largest;  // a scale comes first
        dequantize(format, b.blocks.data(), static_cast<int64_t>(n * k), b.values.data());
        const std::vector<float> packed = packed_floats(b, n, k);
        Matrix a(m, k, 0, 1);
        for (size_t i = 0; i < m; ++i)
            for (size_t l = 0; l < k; ++l) a.at(i, l) = i % 2 ? -1.0f : 1.0f;
        for_each_int8_variant([&](int variant) {
            Matrix c(m, n, 0, 3);
            GemmArgs g;
            g.m = m, g.n = n, g.k = k;
            g.a = a.data(), g.lda = a.stride;
            g.c = c.data(), g.ldc = c.stride;
            block_gemm_int8_in(variant, g, format, reinterpret_cast<const std::byte*>(packed.data()), 0, 1);
            for (size_t i = 0; i < m; ++i)
                for (size_t j = 0; j < n; ++j) {
                    double sum = 0;
                    for (size_t l = 0; l < k; ++l) sum += a.at(i, l) * b.values[j * k + l];
                    EXPECT_NEAR(c.at(i, j), sum, 1e-4 * std::abs(sum)) << i << ", " << j;
                }
        });
    }
}

TEST_F(BlockGemmInt8, ComputesRowsOfZerosAndDenormals) {
    const BlockWeights b(kFormats[0], 16, 32, 2, -2, 3);
    const std::vector<float> packed = packed_floats(b, 16, 32);
    Matrix a(2, 32, 0, 1), c(2, 16, 0, 3);
    for (size_t i = 0; i < 32; ++i) a.at(0, i) = 0, a.at(1, i) = 1e-42f;
    GemmArgs g;
    g.m = 2, g.n = 16, g.k = 32;
    g.a = a.data(), g.lda = a.stride;
    g.c = c.data(), g.ldc = c.stride;
    block_gemm_int8(g, b.format, reinterpret_cast<const std::byte*>(packed.data()), 0, 1);
    for (size_t j = 0; j < 16; ++j) {
        EXPECT_EQ(c.at(0, j), 0);
        EXPECT_LT(std::abs(c.at(1, j)), 1e-30f);
    }
}

}  // namespace
}  // namespace headrace::kernels
