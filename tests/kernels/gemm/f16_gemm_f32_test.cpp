#include "kernels/gemm/f16_gemm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/each_target.h"
#include "kernels/gemm/block_product.h"
#include "kernels/guarded.h"
#include "kernels/half_floats.h"

namespace headrace::kernels {
namespace {

using testing::BlockCase;
using testing::BlockProduct;
using testing::for_each_target;
using testing::Guarded;
using testing::PackedHalfFloats;

void expect_product(const BlockCase& t, bool is_bf16, bool transposed, int nth, Guarded::Side side) {
    SCOPED_TRACE(::testing::Message() << t.m << "x" << t.n << "x" << t.k << (is_bf16 ? " bf16" : " f16")
                                      << (transposed ? " transposed" : "") << " threads " << nth);
    BlockProduct product(t);
    const PackedHalfFloats b(t.n, t.k, is_bf16, transposed, packed_half_float_bytes(t.k, t.n),
                             pack_half_floats);
    Guarded packed(b.packed, side), bias(product.bias, side);
    const GemmArgs g = product.args(bias.data());
    for (int ith = 0; ith < nth; ++ith)
        f16_gemm_f32(g, reinterpret_cast<const std::uint16_t*>(packed.data()), is_bf16, ith, nth);
    product.expect_result([&](size_t i, size_t l) { return product.a.at(i, l); }, b.values);
}

TEST(HalfGemm, MultipliesByTheExactValues) {
    for_each_target([] {
        size_t turn = 0;
        for (const bool is_bf16 : {false, true})
            for (const bool transposed : {false, true})
                for (const BlockCase& t : std::initializer_list<BlockCase>{{1, 1, 1},
                                                                           {1, 70, 64},
                                                                           {2, 1030, 37},
                                                                           {1, 6, 515},
                                                                           {3, 17, 5},
                                                                           {5, 64, 256},
                                                                           {7, 65, 291},
                                                                           {200, 130, 96},
                                                                           {6, 3, 1055}})
                    for (Guarded::Side side : {Guarded::Side::front, Guarded::Side::back})
                        expect_product(t, is_bf16, transposed, testing::thread_count(turn++), side);
    });
}

TEST(HalfGemm, AddsBiasActivationAndResidual) {
    for_each_target([] {
        for (int nth : testing::kThreadCounts)
            for (const size_t m : {1, 2, 17})
                for (const bool transposed : {false, true})
                    expect_product({m, 100, 70, Activation::relu, true, true}, nth % 2 == 0, transposed, nth,
                                   Guarded::Side::back);
    });
}

TEST(HalfGemm, KeepsInfinitiesNaNsAndSubnormals) {
    for_each_target([] {
        for (const size_t m : {1, 3}) {
            // f16: infinity, a NaN, the least subnormal, the largest.
            const std::uint16_t b[] = {0x7c00, 0x7e00, 0x0001, 0x7bff};
            alignas(64) std::uint16_t packed[16];
            pack_half_floats(b, 4, 1, 1, 4, packed);
            const std::vector<float> a(m, 2.0f);
            std::vector<float> c(m * 4);
            GemmArgs g;
            g.m = m, g.n = 4, g.k = 1;
            g.a = a.data(), g.lda = 1, g.c = c.data(), g.ldc = 4;
            f16_gemm_f32(g, packed, false, 0, 1);
            for (size_t i = 0; i < m; ++i) {
                EXPECT_EQ(c[i * 4], std::numeric_limits<float>::infinity());
                EXPECT_TRUE(std::isnan(c[i * 4 + 1]));
                EXPECT_EQ(c[i * 4 + 2], std::ldexp(1.0f, -23));
                EXPECT_EQ(c[i * 4 + 3], 2 * 65504.0f);
            }
        }
    });
}

}  // namespace
}  // namespace headrace::kernels
