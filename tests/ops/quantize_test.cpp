#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(QuantizeLinear, RoundsHalvesToEvenAndAddsTheZeroPoint) {
    EXPECT_THAT(values<int>("quantize_linear", {tensor(DType::f32, {5}, {1, 3, 5, -1, -3}),
                                                tensor(DType::f32, {1}, {2}), tensor(DType::i8, {1}, {10})}),
                ElementsAre(10, 12, 12, 10, 8));
}

TEST(QuantizeLinear, SaturatesToTheTypeOfTheZeroPoint) {
    const auto extremes = [](DType whole) {
        return values<std::int64_t>("quantize_linear",
                                    {tensor(DType::f32, {3}, {1e10, -1e10, std::nan("")}),
                                     tensor(DType::f32, {1}, {1}), tensor(whole, {1}, {0})});
    };
    EXPECT_THAT(extremes(DType::i4), ElementsAre(7, -8, -8));
    EXPECT_THAT(extremes(DType::u4), ElementsAre(15, 0, 0));
    EXPECT_THAT(extremes(DType::i8), ElementsAre(127, -128, -128));
    EXPECT_THAT(extremes(DType::u8), ElementsAre(255, 0, 0));
    EXPECT_THAT(extremes(DType::i16), ElementsAre(32767, -32768, -32768));
    EXPECT_THAT(extremes(DType::i32), ElementsAre(INT32_MAX, INT32_MIN, INT32_MIN));
}

TEST(QuantizeLinear, UsesOneScalePerBlock) {
    // [2, 4] in blocks of [2, 2].
    EXPECT_THAT(values<int>("quantize_linear",
                            {tensor(DType::f16, {2, 4}, {2, 4, 6, 8, 10, 12, 14, 16}),
                             tensor(DType::f16, {1, 2}, {2, 4}), tensor(DType::u8, {1, 2}, {0, 100})}),
                ElementsAre(1, 2, 102, 102, 5, 6, 104, 104));
}

TEST(QuantizeLinear, PacksNibblesLowFirst) {
    const auto out = run("quantize_linear", {tensor(DType::f32, {3}, {1, -2, 3}),
                                             tensor(DType::f32, {1}, {1}), tensor(DType::i4, {1}, {0})})[0];
    EXPECT_EQ(out.type.str(), "i4[3]");
    EXPECT_THAT(out.bytes, ElementsAre(std::byte{0xE1}, std::byte{0x03}));
}

TEST(DequantizeLinear, SubtractsTheZeroPointBeforeScaling) {
    EXPECT_THAT(values("dequantize_linear", {tensor(DType::u8, {3}, {0, 128, 255}),
                                             tensor(DType::f32, {1}, {0.5}), tensor(DType::u8, {1}, {128})}),
                ElementsAre(-64, 0, 63.5f));
    EXPECT_THAT(
        values("dequantize_linear", {tensor(DType::i32, {1}, {INT32_MAX}), tensor(DType::f32, {1}, {1}),
                                     tensor(DType::i32, {1}, {INT32_MIN})}),
        ElementsAre(4294967295.0f));
}

TEST(DequantizeLinear, NeedsNoZeroPoint) {
    EXPECT_THAT(values("dequantize_linear",
                       {tensor(DType::i8, {2}, {-3, 4}), tensor(DType::f16, {}, {2}), std::nullopt}),
                ElementsAre(-6, 8));
}

TEST(DequantizeLinear, UsesOneScalePerBlockOfPackedElements) {
    // [3, 4] in blocks of [1, 2]; an odd number of rows of scales.
    EXPECT_THAT(
        values("dequantize_linear", {tensor(DType::u4, {3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15}),
                                     tensor(DType::f32, {3, 2}, {1, 10, 2, 20, 3, 30}),
                                     tensor(DType::u4, {3, 2}, {0, 1, 0, 1, 0, 1})}),
        ElementsAre(0, 1, 10, 20, 8, 10, 100, 120, 24, 27, 270, 420));
}

TEST(DequantizeLinear, AlignsAScaleOfLowerRankWithTheLastDimensions) {
    EXPECT_THAT(
        values("dequantize_linear", {tensor(DType::i8, {2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1}),
                                     tensor(DType::f32, {2, 1}, {3, 5}), tensor(DType::i8, {2, 1}, {0, 0})}),
        ElementsAre(3, 3, 5, 5, 3, 3, 5, 5));
}

TEST(DequantizeLinear, UndoesQuantization) {
    std::vector<double> x;
    for (int i = 0; i < 2 * 3 * 8; ++i) x.push_back((i % 15 - 7) * 0.25);
    const auto scale = tensor(DType::f32, {1, 3, 2}, std::vector<double>(6, 0.25));
    const auto zero_point = tensor(DType::i4, {1, 3, 2}, std::vector<double>(6, 0));
    const auto input = tensor(DType::f32, {2, 3, 8}, x);
    const auto whole = run("quantize_linear", {input, scale, zero_point})[0];
    EXPECT_EQ(values("dequantize_linear", {whole, scale, zero_point}), input.as<float>());
}

TEST(Quantize, AcceptsEmptyTensors) {
    EXPECT_TRUE(
        values("dequantize_linear", {tensor(DType::u4, {0, 4}, {}), tensor(DType::f32, {1, 2}, {1, 1}),
                                     tensor(DType::u4, {1, 2}, {0, 0})})
            .empty());
}

TEST(Quantize, RejectsScalesThatDoNotDivideTheInput) {
    const TensorType x{DType::f32, {4, 6}}, q{DType::i8, {4, 6}};
    const TensorType scale{DType::f32, {4, 4}}, zero_point{DType::i8, {4, 4}};
    EXPECT_THAT(
        infer_error("quantize_linear", {x, scale, zero_point}),
        HasSubstr("Incompatible shapes: extent 4 of scale [4, 4] does not divide extent 6 of input [4, 6]"));
    EXPECT_THAT(infer_error("dequantize_linear", {q, scale, zero_point}), HasSubstr("does not divide"));
    EXPECT_THAT(infer_error("dequantize_linear",
                            {TensorType{DType::i8, {4}}, TensorType{DType::f32, {1, 4}}, std::nullopt}),
                HasSubstr("scale [1, 4] has more dimensions than input [4]"));
    EXPECT_THAT(conditions("dequantize_linear", {TensorType{DType::i8, {Dim::symbolic("n")}},
                                                 TensorType{DType::f32, {2}}, std::nullopt}),
                ElementsAre("n = 2*(n//2)"));
}

TEST(Quantize, RejectsAZeroPointUnlikeTheScale) {
    const TensorType x{DType::f32, {4}}, q{DType::i8, {4}}, one{DType::f32, {1}};
    EXPECT_THAT(infer_error("quantize_linear", {x, one, q}),
                HasSubstr("Shape mismatch: zero_point [4] must have the shape of scale [1]"));
    EXPECT_THAT(infer_error("dequantize_linear", {q, one, TensorType{DType::i8, {4}}}),
                HasSubstr("Shape mismatch"));
    EXPECT_THAT(infer_error("dequantize_linear", {q, one, TensorType{DType::u8, {1}}}), HasSubstr("u8"));
    EXPECT_THAT(infer_error("quantize_linear", {x, TensorType{DType::f16, {1}}, TensorType{DType::i8, {1}}}),
                HasSubstr("f16"));
}

TEST(Quantize, KeepsSymbolicExtents) {
    const Dim n = Dim::symbolic("n");
    EXPECT_EQ(infer("quantize_linear", {TensorType{DType::f32, {n, 4}}, TensorType{DType::f32, {n, 2}},
                                        TensorType{DType::u4, {n, 2}}})
                  .value()[0]
                  .str(),
              "u4[n, 4]");
}

}  // namespace
}  // namespace headrace::testing
