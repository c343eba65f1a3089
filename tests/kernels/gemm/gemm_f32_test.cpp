#include "kernels/gemm/gemm_f32.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "kernels/each_target.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::kInf;
using testing::Matrix;
using testing::random_floats;

struct AlignedFloats {
    std::unique_ptr<float, decltype(&std::free)> data;
    explicit AlignedFloats(size_t bytes)
        : data(static_cast<float*>(
                   std::aligned_alloc(kPackedAlignment, (bytes / kPackedAlignment + 1) * kPackedAlignment)),
               &std::free) {}
};

double activated(Activation activation, double x, double low, double high) {
    switch (activation) {
        case Activation::none: return x;
        case Activation::relu: return x > 0 ? x : 0;
        case Activation::clamp: return std::min(std::max(x, low), high);
        case Activation::gelu_erf: return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
        case Activation::gelu_tanh:
            return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
        case Activation::silu: return x / (1 + std::exp(-x));
        case Activation::sigmoid: return 1 / (1 + std::exp(-x));
        case Activation::tanh: return std::tanh(x);
    }
    return NAN;
}

struct GemmCase {
    size_t m, n, k;
    Activation activation = Activation::none;
    bool bias = false, residual = false, transposed = false;
};

// Runs one product on nth threads' shares and compares it with the sum in double precision.
void expect_product(const GemmCase& t, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << t.m << "x" << t.n << "x" << t.k << " activation " << int(t.activation) << " bias "
                 << t.bias << " residual " << t.residual << " threads " << nth);
    const Matrix a(t.m, t.k, 3, 1), residual(t.m, t.n, 5, 3);
    const Matrix b = t.transposed ? Matrix(t.n, t.k, 2, 2) : Matrix(t.k, t.n, 2, 2);
    const std::vector<float> bias = random_floats(t.n, 4);
    Matrix c(t.m, t.n, 7, 5);
    const AlignedFloats packed(packed_bytes(t.k, t.n));
    pack(b.data(), t.transposed ? 1 : b.stride, t.transposed ? b.stride : 1, t.k, t.n, packed.data.get());

    GemmArgs g;
    g.m = t.m, g.n = t.n, g.k = t.k;
    g.a = a.data(), g.lda = a.stride;
    g.packed_b = packed.data.get();
    g.c = c.data(), g.ldc = c.stride;
    if (t.bias) g.bias = bias.data();
    if (t.residual) g.residual = residual.data(), g.ldr = residual.stride;
    g.activation = t.activation, g.clamp_min = -0.5f, g.clamp_max = 0.25f;
    for (int ith = 0; ith < nth; ++ith) gemm_f32(g, ith, nth);

    for (size_t i = 0; i < t.m; ++i) {
        for (size_t j = 0; j < t.n; ++j) {
            double sum = t.bias ? bias[j] : 0, magnitude = 1;
            for (size_t l = 0; l < t.k; ++l) {
                const double product = double(a.at(i, l)) * (t.transposed ? b.at(j, l) : b.at(l, j));
                sum += product, magnitude += std::abs(product);
            }
            const double expected =
                activated(t.activation, sum, -0.5, 0.25) + (t.residual ? residual.at(i, j) : 0);
            // Rounding of a sum grows with the sum of magnitudes; 1e-6 covers the activations.
            ASSERT_NEAR(c.at(i, j), expected, 1e-6 + 4e-7 * magnitude) << "at " << i << ", " << j;
        }
    }
    ASSERT_TRUE(c.gaps_untouched());
}

TEST(GemmF32, MatchesDoubleReferenceOverOddSizes) {
    for_each_target([] {
        size_t turn = 0;
        for (size_t m : {1, 2, 3, 5, 6, 7, 12, 13, 29, 64})
            for (size_t n : {1, 7, 15, 16, 17, 33, 48, 63, 64, 65, 130})
                for (size_t k : {1, 2, 9, 64}) expect_product({m, n, k}, testing::thread_count(turn++));
    });
}

TEST(GemmF32, ContinuesSumsAcrossDepthSlices) {
    for_each_target([] {
        for (size_t n : {16, 70}) expect_product({9, n, 1100, Activation::gelu_erf, true, true}, 2);
    });
}

TEST(GemmF32, CoversMoreRowsThanOneBlock) {
    for_each_target([] { expect_product({421, 80, 40, Activation::relu, true}, 3); });
}

TEST(GemmF32, AppliesBiasActivationAndResidualInThatOrder) {
    for_each_target([] {
        for (auto activation :
             {Activation::none, Activation::relu, Activation::clamp, Activation::gelu_erf,
              Activation::gelu_tanh, Activation::silu, Activation::sigmoid, Activation::tanh})
            for (bool bias : {false, true})
                for (bool residual : {false, true})
                    expect_product({8, 75, 20, activation, bias, residual}, 2);
    });
}

TEST(GemmF32, PacksTransposedWeights) {
    for_each_target([] {
        for (size_t n : {5, 64, 100}) expect_product({7, n, 33, Activation::none, true, false, true}, 2);
    });
}

TEST(GemmF32, SplitsWorkOverAnyNumberOfThreads) {
    for_each_target([] {
        for (int nth : {1, 2, 3, 7, 16, 64})
            for (size_t m : {1, 6, 50})
                for (size_t n : {16, 100, 400}) expect_product({m, n, 12}, nth);
    });
}

TEST(GemmF32, AddsOneResidualRowToEveryRowWhenItsStrideIsZero) {
    const size_t m = 9, n = 20, k = 4;
    const std::vector<float> a(m * k, 1), b(k * n, 2), residual = random_floats(n, 9);
    std::vector<float> c(m * n);
    const AlignedFloats packed(packed_bytes(k, n));
    pack(b.data(), n, 1, k, n, packed.data.get());
    GemmArgs g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.packed_b = packed.data.get(), g.c = c.data(),
    g.ldc = n;
    g.residual = residual.data(), g.ldr = 0;
    for_each_target([&] {
        gemm_f32(g, 0, 1);
        for (size_t i = 0; i < m * n; ++i) ASSERT_EQ(c[i], 8 + residual[i % n]);
    });
}

TEST(GemmF32, GivesTheBiasWhenDepthIsZero) {
    const std::vector<float> bias = random_floats(70, 3);
    std::vector<float> c(3 * 70, -1);
    const AlignedFloats packed(0);
    GemmArgs g;
    g.m = 3, g.n = 70, g.packed_b = packed.data.get(), g.c = c.data(), g.ldc = 70, g.bias = bias.data();
    for_each_target([&] {
        std::fill(c.begin(), c.end(), -1.0f);
        for (int ith = 0; ith < 3; ++ith) gemm_f32(g, ith, 3);
        for (size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], bias[i % 70]);
    });
}

TEST(GemmF32, CarriesNanAndInfinityToTheirRowOnly) {
    const size_t m = 8, n = 40, k = 10;
    std::vector<float> a = random_floats(m * k, 1), b = random_floats(k * n, 2, 0.5f, 1), c(m * n);
    a[2 * k + 3] = NAN;
    a[5 * k + 1] = kInf;
    const AlignedFloats packed(packed_bytes(k, n));
    pack(b.data(), n, 1, k, n, packed.data.get());
    GemmArgs g;
    g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.packed_b = packed.data.get(), g.c = c.data(),
    g.ldc = n;
    for_each_target([&] {
        for (auto activation : {Activation::none, Activation::relu, Activation::gelu_erf, Activation::silu}) {
            g.activation = activation;
            gemm_f32(g, 0, 1);
            for (size_t i = 0; i < m; ++i) {
                for (size_t j = 0; j < n; ++j) {
                    const float v = c[i * n + j];
                    if (i == 2)
                        ASSERT_TRUE(std::isnan(v));
                    else if (i == 5)
                        ASSERT_EQ(v, kInf);
                    else
                        ASSERT_TRUE(std::isfinite(v));
                }
            }
        }
    });
}

TEST(GemmF32, PackedBytesRoundColumnsUpToSixteen) {
    EXPECT_EQ(packed_bytes(3, 1), 3 * 16 * sizeof(float));
    EXPECT_EQ(packed_bytes(3, 64), 3 * 64 * sizeof(float));
    EXPECT_EQ(packed_bytes(3, 65), 3 * 80 * sizeof(float));
}

}  // namespace
}  // namespace headrace::kernels
