#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "ggml.h"
#include "ir/block_format.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/matrix.h"

namespace headrace::kernels::testing {

struct GgmlFormat {
    BlockFormat format;
    ggml_type type;
};
inline constexpr GgmlFormat kGgmlFormats[] = {
    {BlockFormat::q8_0, GGML_TYPE_Q8_0}, {BlockFormat::q4_0, GGML_TYPE_Q4_0},
    {BlockFormat::q4_1, GGML_TYPE_Q4_1}, {BlockFormat::q5_0, GGML_TYPE_Q5_0},
    {BlockFormat::q5_1, GGML_TYPE_Q5_1}, {BlockFormat::q4_k, GGML_TYPE_Q4_K},
    {BlockFormat::q5_k, GGML_TYPE_Q5_K}, {BlockFormat::q6_k, GGML_TYPE_Q6_K}};

// What ggml has, and ours with scales in f32.
inline std::vector<BlockFormat> all_formats() {
    std::vector<BlockFormat> formats;
    for (int i = 1; i < kBlockFormatCount; ++i) formats.push_back(static_cast<BlockFormat>(i));
    return formats;
}

inline ggml_type ggml_type_of(BlockFormat format) { return kGgmlFormats[static_cast<int>(format) - 1].type; }

// Blocks as ggml makes them.
inline std::vector<std::byte> ggml_blocks(BlockFormat format, const std::vector<float>& values) {
    std::vector<std::byte> blocks(blocks_bytes(format, static_cast<int64_t>(values.size())));
    ggml_quantize_chunk(ggml_type_of(format), values.data(), blocks.data(), 0, 1,
                        static_cast<int64_t>(values.size()), nullptr);
    return blocks;
}

// Blocks as whoever has the format makes them.
inline std::vector<std::byte> blocks_of(BlockFormat format, const std::vector<float>& values) {
    if (is_of_ggml(format)) return ggml_blocks(format, values);
    const auto count = static_cast<int64_t>(values.size());
    std::vector<std::byte> blocks(blocks_bytes(format, count));
    quantize(format, values.data(), count, blocks.data());
    return blocks;
}

// Weights in blocks, and the values that these stand for.
struct BlockWeights {
    BlockFormat format;
    std::vector<std::byte> blocks;
    std::vector<float> values;

    BlockWeights(BlockFormat f, size_t n, size_t k, unsigned seed, float low = -1, float high = 1)
        : format(f), values(random_floats(n * k, seed, low, high)) {
        blocks = blocks_of(format, values);
        dequantize(format, blocks.data(), static_cast<int64_t>(values.size()), values.data());
    }
};

struct BlockCase {
    size_t m, n, k;
    Activation activation = Activation::none;  // or relu
    bool bias = false, residual = false;

    // The same with k a multiple of the format's block.
    BlockCase fitting(BlockFormat format) const {
        BlockCase fitted = *this;
        const auto block = static_cast<size_t>(block_elements(format));
        fitted.k = (k + block - 1) / block * block;
        return fitted;
    }
};

// A product's operands and its result, with gaps between the rows.
struct BlockProduct {
    BlockCase size;
    Matrix a{size.m, size.k, 3, 1}, residual{size.m, size.n, 5, 3}, c{size.m, size.n, 7, 5};
    std::vector<float> bias = random_floats(size.n, 4);

    explicit BlockProduct(const BlockCase& t) : size(t) {}

    GemmArgs args(const float* bias_data) {
        GemmArgs g;
        g.m = size.m, g.n = size.n, g.k = size.k;
        g.a = a.data(), g.lda = a.stride;
        g.c = c.data(), g.ldc = c.stride;
        if (size.bias) g.bias = bias_data;
        if (size.residual) g.residual = residual.data(), g.ldr = residual.stride;
        g.activation = size.activation;
        return g;
    }

    // `a_value(row, column)` is what the kernel multiplies by b's [n, k] values.
    void expect_result(auto&& a_value, std::span<const float> b) const {
        for (size_t i = 0; i < size.m; ++i)
            for (size_t j = 0; j < size.n; ++j) {
                double sum = size.bias ? bias[j] : 0, magnitude = 1;
                for (size_t l = 0; l < size.k; ++l) {
                    const double product = double(a_value(i, l)) * b[j * size.k + l];
                    sum += product, magnitude += std::abs(product);
                }
                if (size.activation == Activation::relu) sum = std::max(sum, 0.0);
                if (size.residual) sum += residual.at(i, j);
                ASSERT_NEAR(c.at(i, j), sum, 1e-6 * magnitude) << "at " << i << ", " << j;
            }
        EXPECT_TRUE(c.gaps_untouched());
    }
};

}  // namespace headrace::kernels::testing
