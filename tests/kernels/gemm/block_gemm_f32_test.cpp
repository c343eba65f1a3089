#include "kernels/gemm/block_gemm_f32.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>

#include "kernels/each_target.h"
#include "kernels/gemm/block_product.h"

namespace headrace::kernels {
namespace {

using testing::all_formats;
using testing::BlockCase;
using testing::BlockProduct;
using testing::BlockWeights;
using testing::for_each_target;
using testing::ggml_blocks;
using testing::ggml_type_of;
using testing::kGgmlFormats;
using testing::random_floats;

TEST(BlockFormat, HasGgmlsSizes) {
    for (const BlockFormat format : all_formats())
        EXPECT_EQ(is_of_ggml(format), static_cast<size_t>(format) <= std::size(kGgmlFormats));
    for (const auto& [format, type] : kGgmlFormats) {
        EXPECT_EQ(ggml_type_of(format), type);
        EXPECT_EQ(block_bytes(format), ggml_type_size(type)) << name_of(format);
        EXPECT_EQ(block_elements(format), ggml_blck_size(type));
        std::string name = ggml_type_name(type);
        for (char& c : name) c = static_cast<char>(std::tolower(c));
        EXPECT_EQ(name_of(format), name);
    }
}

TEST(BlockFormat, QuantizesToGgmlsBytes) {
    std::vector<float> values = random_floats(32 * 200, 1, -3, 3);
    std::fill(values.begin(), values.begin() + 32, 0.0f);        // no scale at all
    std::fill(values.begin() + 32, values.begin() + 64, -1.5f);  // all alike
    for (BlockFormat format : {BlockFormat::q8_0, BlockFormat::q4_0}) {
        std::vector<std::byte> blocks(values.size() / 32 * block_bytes(format));
        quantize(format, values.data(), static_cast<int64_t>(values.size()), blocks.data());
        EXPECT_EQ(blocks, ggml_blocks(format, values)) << name_of(format);
    }
}

TEST(BlockFormat, DequantizesToGgmlsFloats) {
    const std::vector<float> values = random_floats(256 * 25, 2, -3, 3);
    for (const auto& [format, type] : kGgmlFormats) {
        const auto blocks = ggml_blocks(format, values);
        std::vector<float> ours(values.size()), theirs(values.size());
        dequantize(format, blocks.data(), static_cast<int64_t>(values.size()), ours.data());
        ggml_get_type_traits(type)->to_float(blocks.data(), theirs.data(),
                                             static_cast<int64_t>(values.size()));
        EXPECT_EQ(ours, theirs) << name_of(format);
        const double bits = static_cast<double>(name_of(format)[1] - '0');
        const double step = 3.5 / (std::exp2(bits - 1) - 1);
        for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(ours[i], values[i], step);
    }
}

TEST(BlockFormat, KeepsScalesInF32) {
    // Far below what f16 holds.
    const std::vector<float> values = random_floats(32 * 50, 4, -3e-12f, 5e-12f);
    using enum BlockFormat;
    for (const BlockFormat format : {q8_0_f32, q4_0_f32, q4_1_f32, q8_16_f32, q4_16_f32}) {
        const auto blocks = testing::blocks_of(format, values);
        std::vector<float> back(values.size());
        dequantize(format, blocks.data(), static_cast<int64_t>(values.size()), back.data());
        const float step = name_of(format).starts_with("q8") ? 5e-12f / 127 : 5e-12f / 7;
        for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(back[i], values[i], step) << name_of(format);
    }
}

void expect_product(const BlockCase& t, BlockFormat format, int nth) {
    SCOPED_TRACE(::testing::Message()
                 << t.m << "x" << t.n << "x" << t.k << " " << name_of(format) << " threads " << nth);
    BlockProduct product(t);
    const BlockWeights b(format, t.n, t.k, 2);
    const GemmArgs g = product.args(product.bias.data());
    for (int ith = 0; ith < nth; ++ith) block_gemm_f32(g, format, b.blocks.data(), ith, nth);
    product.expect_result([&](size_t i, size_t l) { return product.a.at(i, l); }, b.values);
}

TEST(BlockGemm, MultipliesByTheExactValuesOfTheBlocks) {
    for_each_target([] {
        size_t turn = 0;
        for (const BlockFormat format : all_formats())
            for (const BlockCase& t : std::initializer_list<BlockCase>{{1, 1, 32},
                                                                       {1, 70, 64},
                                                                       {2, 131, 160},
                                                                       {5, 64, 256},
                                                                       {7, 65, 288},
                                                                       {13, 16, 512},
                                                                       {200, 130, 96},
                                                                       {6, 3, 1056}})
                expect_product(t.fitting(format), format, testing::thread_count(turn++));
    });
}

TEST(BlockGemm, AddsBiasActivationAndResidual) {
    for_each_target([] {
        for (int nth : testing::kThreadCounts)
            for (const size_t rows : {1, 2, 17})
                expect_product({rows, 100, 320, Activation::relu, true, true}, BlockFormat::q8_0, nth);
    });
}

}  // namespace
}  // namespace headrace::kernels
