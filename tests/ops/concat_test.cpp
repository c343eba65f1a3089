#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Concat, JoinsAlongTheAxis) {
    const auto a = tensor(DType::f32, {2, 1}, {1, 2}), b = tensor(DType::f32, {2, 2}, {3, 4, 5, 6});
    EXPECT_THAT(values("concat", {a, b}, along(1)), ElementsAre(1, 3, 4, 2, 5, 6));
    EXPECT_THAT(values("concat", {a, b, a}, along(-1)), ElementsAre(1, 3, 4, 1, 2, 5, 6, 2));
    const auto c = tensor(DType::i64, {1, 2}, {1, 2}), d = tensor(DType::i64, {2, 2}, {3, 4, 5, 6});
    EXPECT_THAT(values<int>("concat", {c, d}, along(0)), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Concat, SplitsLongRowsOverThreads) {
    std::vector<double> x(500), expected(1000);
    for (int i = 0; i < 500; ++i) x[i] = expected[i / 250 * 500 + i % 250] = i;
    for (int i = 0; i < 500; ++i) expected[i / 250 * 500 + 250 + i % 250] = i;
    const auto t = tensor(DType::f32, {2, 250}, x);
    EXPECT_EQ(values<double>("concat", {t, t}, along(1)), expected);
}

TEST(Concat, JoinsPackedNibblesAcrossByteBorders) {
    EXPECT_THAT(values<int>("concat", {tensor(DType::i4, {3}, {1, -2, 3}), tensor(DType::i4, {2}, {4, -5})},
                            along(0)),
                ElementsAre(1, -2, 3, 4, -5));
}

TEST(Concat, TakesEmptyAndManyInputs) {
    OptionalTensors in(20, tensor(DType::u8, {1}, {9}));
    in[7] = tensor(DType::u8, {0}, {});
    EXPECT_EQ(values<int>("concat", in, along(0)), std::vector<int>(19, 9));
}

TEST(Concat, AddsSymbolicExtents) {
    const Dim n = Dim::symbolic("n", 2, 10);
    const auto out =
        infer("concat", {TensorType{DType::f32, {n, 3}}, TensorType{DType::f32, {4, 3}}}, along(0));
    EXPECT_EQ(out.value()[0].str(), "f32[(n+4), 3]");
    EXPECT_EQ(out.value()[0].shape[0].min_size(), 6);
    EXPECT_EQ(out.value()[0].shape[0].max_size(), 14);
}

TEST(Concat, MultipliesAnExtentThatItRepeats) {
    const TensorType x{DType::f32, {Dim::symbolic("n", 2, 5), 3}};
    const auto out = infer("concat", {x, x, x}, along(0));
    EXPECT_EQ(out.value()[0].str(), "f32[3*n, 3]");
    EXPECT_EQ(out.value()[0].shape[0].min_size(), 6);
    EXPECT_EQ(out.value()[0].shape[0].max_size(), 15);
}

TEST(Concat, AddsUpToTheExtentThatAnotherSpells) {
    const TensorType past{DType::f32, {Dim::symbolic("n"), 3}}, one{DType::f32, {1, 3}};
    const TensorType next{DType::f32, {Dim::symbolic("1 + n"), 3}};
    EXPECT_EQ(infer("concat", {past, one}, along(0)).value()[0], next);
    EXPECT_EQ(infer("concat", {one, past}, along(0)).value()[0], next);
}

TEST(Concat, SaysWhichInputDoesNotFit) {
    const TensorType a{DType::f32, {2, 3}};
    EXPECT_EQ(infer_error("concat", {a, a, TensorType{DType::f32, {2, 4}}}, along(0)),
              "Incompatible shapes [2, 3] and [2, 4] (input 2): dimension 1 differs, only axis 0 may");
    EXPECT_EQ(infer_error("concat", {a, TensorType{DType::f32, {2}}}, along(0)),
              "inputs have ranks 2 and 1 (input 1); all must be equal");
    EXPECT_THAT(infer_error("concat", {a, TensorType{DType::i32, {2, 3}}}, along(0)),
                HasSubstr("same dtype"));
    EXPECT_EQ(infer_error("concat", {a}, along(2)), "Axis 2 out of bounds for rank 2");
    EXPECT_THAT(infer_error("concat", {}, along(0)), HasSubstr("inputs is empty; give an operand at least"));
    const TensorType huge{DType::i4, {INT64_MAX}};
    EXPECT_THAT(infer_error("concat", {huge, huge}, along(0)), HasSubstr("more than the largest integer"));
}

}  // namespace
}  // namespace headrace::testing
