#include <gtest/gtest.h>

#include "headrace/webnn.h"

namespace headrace::webnn {
namespace {

template <class Options>
concept HasStride = requires(Options options) {
    options.stride;
};
template <class Options>
concept HasStrides = requires(Options options) {
    options.strides;
};

TEST(WebnnOptions, DoNotCompileWhereTheyAreMisspelled) {
    EXPECT_TRUE(HasStrides<MLConv2dOptions>);
    EXPECT_FALSE(HasStride<MLConv2dOptions>);
}

TEST(WebnnOptions, AreWhatTheMethodsTake) {
    const MLOptions options =
        MLConv2dOptions{.strides = {{2, 1}}, .groups = 4, .inputLayout = MLInputOperandLayout::kNhwc};
    const MLOptions expected{{"strides", std::vector<std::int64_t>{2, 1}},
                             {"groups", std::int64_t{4}},
                             {"input_layout", std::string("nhwc")}};
    EXPECT_EQ(options, expected);
    EXPECT_EQ(MLOptions(MLConv2dOptions{}), MLOptions{});
}

TEST(WebnnOptions, KeepIntegersExact) {
    constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;
    const MLOptions options = MLClampOptions{.minValue = kLarge, .maxValue = 6.5};
    EXPECT_EQ(options, (MLOptions{{"min_value", kLarge}, {"max_value", 6.5}}));
}

TEST(WebnnOptions, NameSeveralActivationsInOrder) {
    const MLOptions options = MLGruOptions{
        .direction = MLRecurrentNetworkDirection::kBoth,
        .activations = {{MLRecurrentNetworkActivation::kRelu, MLRecurrentNetworkActivation::kTanh}}};
    EXPECT_EQ(options,
              (MLOptions{{"direction", std::string("both")}, {"activations", std::string("relu,tanh")}}));
}

TEST(WebnnOptions, ReachTheOperators) {
    MLContext context;
    MLGraphBuilder builder(context);
    const MLOperand x = builder.input("x", {DType::f32, {1, 4, 8, 8}});
    const MLOperand filter = builder.input("filter", {DType::f32, {4, 1, 3, 3}});
    const MLConv2dOptions halved{.strides = {{2, 2}}, .padding = {{1, 1, 1, 1}}, .groups = 4};
    const MLOperand y = builder.conv2d(x, filter, {}, halved);
    EXPECT_EQ(y.shape(), (std::vector<MLDimension>{1, 4, 4, 4}));
    const auto largest =
        builder.argMax(y, 1, MLArgMinMaxOptions{.keepDimensions = true, .outputDataType = DType::i64});
    EXPECT_EQ(largest.shape(), (std::vector<MLDimension>{1, 1, 4, 4}));
    EXPECT_EQ(largest.dataType(), DType::i64);
    const auto parts = builder.split(y, {1, 3}, MLSplitOptions{.axis = 1}, "parts");
    EXPECT_EQ(parts[1].shape(), (std::vector<MLDimension>{1, 3, 4, 4}));
}

}  // namespace
}  // namespace headrace::webnn
