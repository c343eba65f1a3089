#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const OptionalTensors kRows{tensor(DType::u8, {2, 2}, {10, 20, 0, 255}),
                            tensor(DType::i8, {2, 3}, {1, -2, 3, 4, 5, -128}), tensor(DType::u8, {}, {10})};

OptionalTensors with(OptionalTensors operands, const OptionalTensors& more) {
    operands.insert(operands.end(), more.begin(), more.end());
    return operands;
}

TEST(MatMulInteger, TakesTheZeroPointAway) {
    EXPECT_THAT(values<int>("matmul_integer", kRows), ElementsAre(40, 50, -1280, 970, 1245, -31390));
    EXPECT_THAT(values<int>("matmul_integer", {kRows[0], kRows[1]}),
                ElementsAre(90, 80, -2530, 1020, 1275, -32640));
}

TEST(MatMulInteger, NamesExtentsThatDiffer) {
    EXPECT_THAT(error("matmul_integer", {kRows[0], tensor(DType::i8, {1, 3}, {1, 2, 3})}),
                HasSubstr("inner extents 2 and 1 differ"));
}

TEST(DequantizedMatMul, ScalesAddsAndActivates) {
    const OptionalTensors scales{tensor(DType::f32, {}, {0.5}), tensor(DType::f32, {3}, {1, 2, 0.5})};
    EXPECT_THAT(values("dequantized_matmul", with(kRows, scales)),
                ElementsAre(20, 50, -320, 485, 1245, -7847.5f));
    const OptionalTensors more{tensor(DType::f32, {3}, {-21, 0, 320.5}),
                               tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})};
    EXPECT_THAT(
        values("dequantized_matmul", with(with(kRows, scales), more), {{"activation", std::string("relu")}}),
        ElementsAre(1, 52, 3.5f, 468, 1250, 6));
}

TEST(DequantizedMatMul, NamesListsOfOtherLengths) {
    const TestTensor one = tensor(DType::f32, {}, {1}), two = tensor(DType::f32, {2}, {1, 1}),
                     three = tensor(DType::f32, {3}, {1, 1, 1});
    EXPECT_THAT(error("dequantized_matmul", with(kRows, {one, two})),
                HasSubstr("b_scale has shape [2] but the product has 3 columns"));
    EXPECT_THAT(error("dequantized_matmul", with(kRows, {one, three, two})),
                HasSubstr("bias has shape [2] but the product has 3 columns"));
    EXPECT_THAT(error("dequantized_matmul",
                      with(kRows, {one, three, std::nullopt, tensor(DType::f32, {1, 2}, {1, 1})})),
                HasSubstr("residual has shape [1, 2] but the product has shape [2, 3]"));
}

}  // namespace
}  // namespace headrace::testing
