#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_graph.h"
#include "headrace/webnn.h"

namespace headrace::webnn {
namespace {

using headrace::testing::message_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class WebnnRules : public ::testing::Test {
protected:
    MLOperand input(DType type, std::vector<MLDimension> shape) {
        return builder.input("x" + std::to_string(++inputs), {type, std::move(shape)});
    }
    MLGraphBuilder builder{MLContext({.accelerated = false})};
    int inputs = 0;
};

TEST_F(WebnnRules, APoolsOutputSizesAreBothRoundedDownOrBothUp) {
    const MLOperand image = input(DType::f32, {1, 1, 6, 6});
    const auto pooled = [&](std::vector<std::int64_t> sizes) {
        MLPool2dOptions options{.windowDimensions = {{3, 3}}, .strides = {{2, 2}}};
        options.outputSizes = std::move(sizes);
        return builder.maxPool2d(image, options, "pool");
    };
    EXPECT_EQ(pooled({2, 2}).shape(), (std::vector<MLDimension>{1, 1, 2, 2}));
    EXPECT_EQ(pooled({3, 3}).shape(), (std::vector<MLDimension>{1, 1, 3, 3}));
    EXPECT_EQ(
        message_of(
            [&] {
                pooled({2, 3});
            },
            Code::invalid_argument),
        "max_pool2d (pool): output_sizes give the output [1, 1, 2, 3]; it must be [1, 1, 2, 2], rounded "
        "down, or [1, 1, 3, 3], rounded up");
    EXPECT_THAT(message_of([&] { pooled({9, 9}); }, Code::invalid_argument), HasSubstr("2 or 3 is possible"));
}

TEST_F(WebnnRules, IndicesOfElementsHaveTheInputsExtentsButAlongTheAxis) {
    const MLOperand x = input(DType::f32, {2, 3}), along = input(DType::i32, {2, 5}),
                    part = input(DType::i32, {1, 5});
    EXPECT_EQ(builder.gatherElements(x, along, MLGatherOptions{.axis = 1}).shape(),
              (std::vector<MLDimension>{2, 5}));
    EXPECT_EQ(
        message_of([&] { builder.gatherElements(x, part, MLGatherOptions{.axis = 1}, "of parts"); },
                   Code::invalid_argument),
        "gather_elements (of parts): indices int32[1, 5] must have the extents of input float32[2, 3] but "
        "along axis 1");
    EXPECT_THAT(
        message_of(
            [&] {
                builder.scatterElements(x, part, input(DType::f32, {1, 5}), MLScatterOptions{.axis = -1});
            },
            Code::invalid_argument),
        StartsWith("scatter_elements: indices int32[1, 5] must have"));
}

TEST_F(WebnnRules, ScalesOfQuantizeLinearHaveTheInputsRank) {
    const MLOperand x = input(DType::f32, {4, 2}), scale = input(DType::f32, {2}),
                    zero = input(DType::u8, {2});
    EXPECT_EQ(message_of([&] { builder.quantizeLinear(x, scale, zero); }, Code::invalid_argument),
              "quantize_linear: scale float32[2] must have the rank of input float32[4, 2], 2");
}

TEST_F(WebnnRules, ConcatWantsAnOperand) {
    EXPECT_EQ(message_of([&] { builder.concat({}, 0); }, Code::invalid_argument),
              "concat: inputs is empty; give an operand at least");
}

}  // namespace
}  // namespace headrace::webnn
