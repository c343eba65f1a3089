#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;

TEST(Bitwise, CombinesBitsOfSignedAndUnsignedIntegers) {
    const auto a = tensor(DType::i8, {3}, {12, -1, 5}), b = tensor(DType::i8, {3}, {10, 6, 0});
    EXPECT_THAT(values<int>("bitwise_and", {a, b}), ElementsAre(8, 6, 0));
    EXPECT_THAT(values<int>("bitwise_or", {a, b}), ElementsAre(14, -1, 5));
    EXPECT_THAT(values<int>("bitwise_xor", {a, b}), ElementsAre(6, -7, 5));
    EXPECT_THAT(values<int>("bitwise_xor", {tensor(DType::u8, {2}, {255, 1}), tensor(DType::u8, {}, {15})}),
                ElementsAre(240, 14));
}

TEST(Bitwise, RefusesFloats) {
    EXPECT_NE(infer_error("bitwise_and", {TensorType{DType::f32, {2}}, TensorType{DType::f32, {2}}}), "");
}

TEST(Shift, MovesBitsAndKeepsTheSignToTheRight) {
    const auto x = tensor(DType::i32, {3}, {5, -8, 1}), by = tensor(DType::i32, {3}, {2, 1, 31});
    EXPECT_THAT(values<int>("shift_left", {x, by}), ElementsAre(20, -16, INT32_MIN));
    EXPECT_THAT(values<int>("shift_right", {x, by}), ElementsAre(1, -4, 0));
    EXPECT_THAT(values<int>("shift_right", {tensor(DType::u8, {}, {200}), tensor(DType::u8, {}, {3})}),
                ElementsAre(25));
}

TEST(Shift, LosesAllBitsOutsideTheWidth) {
    const auto x = tensor(DType::i8, {4}, {3, 3, -3, -3}), by = tensor(DType::i8, {4}, {8, -1, 8, -1});
    EXPECT_THAT(values<int>("shift_left", {x, by}), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(values<int>("shift_right", {x, by}), ElementsAre(0, 0, -1, -1));
}

}  // namespace
}  // namespace headrace::testing
