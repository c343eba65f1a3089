#include "kernels/half_gemm_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/block_product.h"
#include "kernels/each_target.h"
#include "kernels/guarded.h"

namespace headrace::kernels {
namespace {

using testing::BlockCase;
using testing::BlockProduct;
using testing::for_each_target;
using testing::Guarded;
using testing::random_floats;

// A packed matrix of halves, from [k][n] or [n][k], and the values [n][k] that they stand for.
struct Halves {
    std::vector<float> packed;  // floats, so that pages can guard them
    std::vector<float> values;

    Halves(size_t n, size_t k, bool is_bf16, bool transposed)
        : packed(packed_halves_bytes(k, n) / sizeof(float)), values(random_floats(n * k, 2)) {
        std::vector<std::uint16_t> bits(n * k);
        for (size_t j = 0; j < n; ++j)
            for (size_t l = 0; l < k; ++l) {
                float& value = values[j * k + l];
                std::uint16_t& bit = bits[transposed ? j * k + l : l * n + j];
                bit = is_bf16 ? float_to_bfloat(value) : float_to_half(value);
                value = is_bf16 ? bfloat_to_float(bit) : half_to_float(bit);
            }
        const auto rows = static_cast<ptrdiff_t>(n), inner = static_cast<ptrdiff_t>(k);
        pack_halves(bits.data(), transposed ? 1 : rows, transposed ? inner : 1, k, n,
                    reinterpret_cast<std::uint16_t*>(packed.data()));
    }
};

void expect_product(const BlockCase& t, bool is_bf16, bool transposed, int nth, Guarded::Side side) {
    SCOPED_TRACE(::testing::Message() << t.m << "x" << t.n << "x" << t.k << (is_bf16 ? " bf16" : " f16")
                                      << (transposed ? " transposed" : "") << " threads " << nth);
    BlockProduct product(t);
    const Halves b(t.n, t.k, is_bf16, transposed);
    Guarded packed(b.packed, side), bias(product.bias, side);
    const GemmArgs g = product.args(bias.data());
    for (int ith = 0; ith < nth; ++ith)
        half_gemm_f32(g, reinterpret_cast<const std::uint16_t*>(packed.data()), is_bf16, ith, nth);
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
            pack_halves(b, 4, 1, 1, 4, packed);
            const std::vector<float> a(m, 2.0f);
            std::vector<float> c(m * 4);
            GemmArgs g;
            g.m = m, g.n = 4, g.k = 1;
            g.a = a.data(), g.lda = 1, g.c = c.data(), g.ldc = 4;
            half_gemm_f32(g, packed, false, 0, 1);
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
