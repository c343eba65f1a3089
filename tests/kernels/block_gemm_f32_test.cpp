#include "kernels/block_gemm_f32.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "ggml.h"
#include "kernels/each_target.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Matrix;
using testing::random_floats;

struct Format {
    BlockFormat format;
    ggml_type type;
};
constexpr Format kFormats[] = {{BlockFormat::q8_0, GGML_TYPE_Q8_0}, {BlockFormat::q4_0, GGML_TYPE_Q4_0},
                               {BlockFormat::q4_1, GGML_TYPE_Q4_1}, {BlockFormat::q5_0, GGML_TYPE_Q5_0},
                               {BlockFormat::q5_1, GGML_TYPE_Q5_1}, {BlockFormat::q4_k, GGML_TYPE_Q4_K},
                               {BlockFormat::q5_k, GGML_TYPE_Q5_K}, {BlockFormat::q6_k, GGML_TYPE_Q6_K}};

ggml_type ggml_type_of(BlockFormat format) { return kFormats[static_cast<int>(format) - 1].type; }

// Blocks as ggml makes them.
std::vector<std::byte> ggml_blocks(BlockFormat format, const std::vector<float>& values) {
    std::vector<std::byte> blocks(blocks_bytes(format, static_cast<int64_t>(values.size())));
    ggml_quantize_chunk(ggml_type_of(format), values.data(), blocks.data(), 0, 1,
                        static_cast<int64_t>(values.size()), nullptr);
    return blocks;
}

TEST(BlockFormat, HasGgmlsSizes) {
    static_assert(std::size(kFormats) == kBlockFormatCount - 1);
    for (const auto& [format, type] : kFormats) {
        EXPECT_EQ(ggml_type_of(format), type);
        EXPECT_EQ(block_bytes(format), ggml_type_size(type)) << name_of(format);
        EXPECT_EQ(block_elements(format), ggml_blck_size(type));
        std::string name = ggml_type_name(type);
        for (char& c : name) c = static_cast<char>(std::tolower(c));
        EXPECT_EQ(name_of(format), name);
    }
}

TEST(BlockFormat, QuantisesToGgmlsBytes) {
    std::vector<float> values = random_floats(32 * 200, 1, -3, 3);
    std::fill(values.begin(), values.begin() + 32, 0.0f);        // no scale at all
    std::fill(values.begin() + 32, values.begin() + 64, -1.5f);  // all alike
    for (BlockFormat format : {BlockFormat::q8_0, BlockFormat::q4_0}) {
        std::vector<std::byte> blocks(values.size() / 32 * block_bytes(format));
        quantise(format, values.data(), static_cast<int64_t>(values.size()), blocks.data());
        EXPECT_EQ(blocks, ggml_blocks(format, values)) << name_of(format);
    }
}

TEST(BlockFormat, DequantisesToGgmlsFloats) {
    const std::vector<float> values = random_floats(256 * 25, 2, -3, 3);
    for (const auto& [format, type] : kFormats) {
        const auto blocks = ggml_blocks(format, values);
        std::vector<float> ours(values.size()), theirs(values.size());
        dequantise(format, blocks.data(), static_cast<int64_t>(values.size()), ours.data());
        ggml_get_type_traits(type)->to_float(blocks.data(), theirs.data(),
                                             static_cast<int64_t>(values.size()));
        EXPECT_EQ(ours, theirs) << name_of(format);
        const double bits = static_cast<double>(name_of(format)[1] - '0');
        const double step = 3.5 / (std::exp2(bits - 1) - 1);
        for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(ours[i], values[i], step);
    }
}

struct Case {
    size_t m, n, k;
    Activation activation = Activation::none;
    bool bias = false, residual = false;
};

void expect_product(const Case& t, BlockFormat format, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << t.m << "x" << t.n << "x" << t.k << " " << name_of(format) << " threads " << nth);
    const Matrix a(t.m, t.k, 3, 1), residual(t.m, t.n, 5, 3);
    const std::vector<float> bias = random_floats(t.n, 4);
    const auto blocks = ggml_blocks(format, random_floats(t.n * t.k, 2));
    std::vector<float> b(t.n * t.k);
    dequantise(format, blocks.data(), static_cast<int64_t>(b.size()), b.data());
    Matrix c(t.m, t.n, 7, 5);
    GemmArgs g;
    g.m = t.m, g.n = t.n, g.k = t.k;
    g.a = a.data(), g.lda = a.stride;
    g.c = c.data(), g.ldc = c.stride;
    if (t.bias) g.bias = bias.data();
    if (t.residual) g.residual = residual.data(), g.ldr = residual.stride;
    g.activation = t.activation;
    for (int ith = 0; ith < nth; ++ith) block_gemm_f32(g, format, blocks.data(), ith, nth);
    for (size_t i = 0; i < t.m; ++i)
        for (size_t j = 0; j < t.n; ++j) {
            double sum = t.bias ? bias[j] : 0, magnitude = 1;
            for (size_t l = 0; l < t.k; ++l) {
                const double product = double(a.at(i, l)) * b[j * t.k + l];
                sum += product, magnitude += std::abs(product);
            }
            if (t.activation == Activation::relu) sum = std::max(sum, 0.0);
            if (t.residual) sum += residual.at(i, j);
            ASSERT_NEAR(c.at(i, j), sum, 1e-6 * magnitude) << "at " << i << ", " << j;
        }
    EXPECT_TRUE(c.gaps_untouched());
}

TEST(BlockGemm, MultipliesByTheExactValuesOfTheBlocks) {
    for_each_target([] {
        size_t turn = 0;
        for (const auto& [format, type] : kFormats)
            for (Case t : {Case{1, 1, 32}, Case{1, 70, 64}, Case{5, 64, 256}, Case{7, 65, 288},
                           Case{13, 16, 512}, Case{200, 130, 96}, Case{6, 3, 1056}}) {
                const auto block = static_cast<size_t>(block_elements(format));
                t.k = (t.k + block - 1) / block * block;
                expect_product(t, format, testing::thread_count(turn++));
            }
    });
}

TEST(BlockGemm, AddsBiasActivationAndResidual) {
    for_each_target([] {
        for (int nth : testing::kThreadCounts)
            expect_product({17, 100, 320, Activation::relu, true, true}, BlockFormat::q8_0, nth);
    });
}

}  // namespace
}  // namespace headrace::kernels
