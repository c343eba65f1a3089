#include "kernels/gemm/bf16_gemm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/half.h"
#include "kernels/each_target.h"
#include "kernels/gemm/block_product.h"
#include "kernels/guarded.h"
#include "kernels/half_floats.h"

namespace headrace::kernels {
namespace {

using testing::BlockCase;
using testing::BlockProduct;
using testing::Guarded;
using testing::PackedHalfFloats;

float rounded(float x) { return bfloat_to_float(float_to_bfloat(x)); }

struct Bf16GemmF32 : ::testing::Test {
    void SetUp() override {
        if (!has_bf16_gemm()) GTEST_SKIP() << "this processor does not multiply bf16";
    }
};

void expect_product(const BlockCase& t, bool transposed, int nth, Guarded::Side side) {
    SCOPED_TRACE(::testing::Message() << t.m << "x" << t.n << "x" << t.k << (transposed ? " transposed" : "")
                                      << " threads " << nth);
    BlockProduct product(t);
    const PackedHalfFloats b(t.n, t.k, true, transposed, packed_bf16_bytes(t.k, t.n), pack_bf16);
    Guarded packed(b.packed, side), bias(product.bias, side);
    const GemmArgs g = product.args(bias.data());
    for (int ith = 0; ith < nth; ++ith)
        bf16_gemm_f32(g, reinterpret_cast<const std::uint16_t*>(packed.data()), ith, nth);
    product.expect_result([&](size_t i, size_t l) { return rounded(product.a.at(i, l)); }, b.values);
}

TEST_F(Bf16GemmF32, MultipliesRoundedRowsByTheExactValues) {
    size_t turn = 0;
    for (const bool transposed : {false, true})
        for (const BlockCase& t : std::initializer_list<BlockCase>{{1, 1, 1},
                                                                   {1, 70, 64},
                                                                   {2, 1030, 37},
                                                                   {1, 6, 515},
                                                                   {3, 17, 5},
                                                                   {5, 64, 256},
                                                                   {7, 65, 291},
                                                                   {200, 130, 96},
                                                                   {6, 3, 4001},
                                                                   {13, 20, 2055},
                                                                   {400, 70, 33}})
            for (Guarded::Side side : {Guarded::Side::front, Guarded::Side::back})
                expect_product(t, transposed, testing::thread_count(turn++), side);
}

TEST_F(Bf16GemmF32, AddsBiasActivationAndResidual) {
    for (int nth : testing::kThreadCounts)
        for (const size_t m : {1, 2, 17})
            expect_product({m, 100, 70, Activation::relu, true, true}, nth % 2 == 0, nth,
                           Guarded::Side::back);
}

// The bits of pack_bf16() of rounded elements.
TEST_F(Bf16GemmF32, PacksF32RoundedToTheNearestEven) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    for (const auto& [k, n] :
         {std::pair<size_t, size_t>{1, 1}, {2, 16}, {7, 5}, {64, 64}, {33, 70}, {129, 131}, {515, 20}}) {
        std::vector<float> b = testing::random_floats(k * n, 6, -300, 300);
        // Halfway between two neighbours of bf16, up to even and down to even; what becomes infinite.
        const float odd[] = {0x1.01p0f, 0x1.03p0f, -0x1.01p0f, 3.4e38f, kInf, -kInf, NAN, 0.0f, -0.0f};
        for (size_t i = 0; i < b.size(); i += 5) b[i] = odd[i / 5 % std::size(odd)];
        std::vector<std::uint16_t> bits(b.size());
        for (size_t i = 0; i < b.size(); ++i) bits[i] = float_to_bfloat(b[i]);
        const size_t count = packed_bf16_bytes(k, n) / sizeof(float);
        const auto rows = static_cast<ptrdiff_t>(n), columns = static_cast<ptrdiff_t>(k);
        for (const auto& [stride_k, stride_n] : {std::pair<ptrdiff_t, ptrdiff_t>{rows, 1}, {1, columns}})
            for (const Guarded::Side side : {Guarded::Side::front, Guarded::Side::back}) {
                Guarded from(b, side), expected(std::vector<float>(count), side),
                    packed(std::vector<float>(count, 1), side);
                pack_bf16(bits.data(), stride_k, stride_n, k, n,
                          reinterpret_cast<std::uint16_t*>(expected.data()));
                pack_as_bf16(from.data(), stride_k, stride_n, k, n,
                             reinterpret_cast<std::uint16_t*>(packed.data()));
                EXPECT_EQ(std::memcmp(packed.data(), expected.data(), count * sizeof(float)), 0)
                    << k << "x" << n << " with strides " << stride_k << ", " << stride_n;
            }
    }
}

// Each factor is off by at most 2^-8 of itself.
TEST_F(Bf16GemmF32, IsWithinItsRoundingOfTheExactProduct) {
    for (const BlockCase& t : std::initializer_list<BlockCase>{{1, 70, 64}, {9, 65, 291}, {200, 130, 96}}) {
        BlockProduct product(t);
        const std::vector<float> b = testing::random_floats(t.n * t.k, 8);
        std::vector<float> packed(packed_bf16_bytes(t.k, t.n) / sizeof(float));
        pack_as_bf16(b.data(), 1, static_cast<ptrdiff_t>(t.k), t.k, t.n,
                     reinterpret_cast<std::uint16_t*>(packed.data()));
        bf16_gemm_f32(product.args(nullptr), reinterpret_cast<const std::uint16_t*>(packed.data()), 0, 1);
        double errors = 0;
        for (size_t i = 0; i < t.m; ++i)
            for (size_t j = 0; j < t.n; ++j) {
                double sum = 0, size = 0;
                for (size_t l = 0; l < t.k; ++l) {
                    const double term = double(product.a.at(i, l)) * b[j * t.k + l];
                    sum += term, size += std::abs(term);
                }
                const double error = std::abs(product.c.at(i, j) - sum);
                ASSERT_LE(error, 2.02 * 0x1p-8 * size) << i << ", " << j;
                errors += error;
            }
        EXPECT_GT(errors, 0) << "nothing was rounded";
    }
}

TEST_F(Bf16GemmF32, KeepsInfinitiesAndNaNs) {
    for (const size_t m : {1, 3}) {
        const std::uint16_t b[] = {0x7f80, 0x7fc0, 0x3f80};
        alignas(64) std::uint16_t packed[32];
        pack_bf16(b, 3, 1, 1, 3, packed);
        for (const float x : {2.0f, std::numeric_limits<float>::infinity(), NAN}) {
            const std::vector<float> a(m, x);
            std::vector<float> c(m * 3);
            GemmArgs g;
            g.m = m, g.n = 3, g.k = 1;
            g.a = a.data(), g.lda = 1, g.c = c.data(), g.ldc = 3;
            bf16_gemm_f32(g, packed, 0, 1);
            for (size_t i = 0; i < m; ++i) {
                EXPECT_TRUE(std::isnan(x) ? std::isnan(c[i * 3]) : std::isinf(c[i * 3]));
                EXPECT_TRUE(std::isnan(c[i * 3 + 1]));
                EXPECT_TRUE(std::isnan(x) ? std::isnan(c[i * 3 + 2]) : c[i * 3 + 2] == x);
            }
        }
    }
}

}  // namespace
}  // namespace headrace::kernels
