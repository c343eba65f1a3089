#include "kernels/gemm/bf16_gemm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/each_target.h"
#include "kernels/gemm/block_product.h"
#include "kernels/guarded.h"
#include "kernels/halves.h"

namespace headrace::kernels {
namespace {

using testing::BlockCase;
using testing::BlockProduct;
using testing::Guarded;
using testing::Halves;

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
    const Halves b(t.n, t.k, true, transposed, packed_bf16_bytes(t.k, t.n), pack_bf16);
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
