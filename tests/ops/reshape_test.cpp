#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Reshape, KeepsTheElementsInRowMajorOrder) {
    const auto out =
        run("reshape", {tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})}, {{"new_shape", Shape{3, 1, 2}}});
    EXPECT_EQ(out[0].type.str(), "f32[3, 1, 2]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(Reshape, TakesScalarsAndPackedNibbles) {
    EXPECT_THAT(values<int>("reshape", {tensor(DType::i64, {1, 1}, {7})}, {{"new_shape", Shape{}}}),
                ElementsAre(7));
    EXPECT_THAT(
        values<int>("reshape", {tensor(DType::i4, {3, 1}, {-8, 7, -1})}, {{"new_shape", Shape{1, 3}}}),
        ElementsAre(-8, 7, -1));
}

TEST(Reshape, NamesBothShapesAndCountsWhenTheyDiffer) {
    EXPECT_EQ(infer_error("reshape", {TensorType{DType::f32, {2, 3}}}, {{"new_shape", Shape{4, 2}}}),
              "Reshape requires same number of elements, got [2, 3] (6) and [4, 2] (8)");
    EXPECT_THAT(infer_error("reshape", {TensorType{DType::f32, {2, 3}}}, {{"new_shape", Shape{-2, -3}}}),
                HasSubstr("negative extent -2"));
    EXPECT_THAT(infer_error("reshape", {TensorType{DType::f32, {2}}},
                            {{"new_shape", Shape{std::int64_t{1} << 40, std::int64_t{1} << 40}}}),
                HasSubstr("larger than the address space"));
    EXPECT_THAT(infer_error("reshape", {TensorType{DType::f32, {2}}}), HasSubstr("new_shape is missing"));
}

TEST(Reshape, ComparesSymbolicExtentsByName) {
    const Dim batch = Dim::symbolic("batch"), length = Dim::symbolic("length");
    const TensorType x{DType::f32, {batch, length, 12}};
    EXPECT_EQ(infer("reshape", {x}, {{"new_shape", Shape{batch, length, 3, 4}}}).value()[0].str(),
              "f32[batch, length, 3, 4]");
    EXPECT_THAT(conditions("reshape", {x}, {{"new_shape", Shape{batch, batch, 12}}}),
                ElementsAre("12*batch*length = 12*batch*batch"));
    EXPECT_EQ(infer_error("reshape", {x}, {{"new_shape", Shape{batch, length, 13}}}),
              "Reshape requires same number of elements, got [batch, length, 12] (12*batch*length) and "
              "[batch, length, 13] (13*batch*length)");
}

TEST(Reshape, MergesAndSplitsSymbolicExtents) {
    const Dim batch = Dim::symbolic("batch"), length = Dim::symbolic("length");
    const Dim rows = product({batch, 8}), tokens = product({length, batch});
    const auto reshaped = [](const Shape& from, const Shape& to) {
        return infer("reshape", {TensorType{DType::f32, from}}, {{"new_shape", to}}).ok();
    };
    EXPECT_TRUE(reshaped({length, batch, 96}, {length, rows, 12}));
    EXPECT_TRUE(reshaped({rows, length, 12}, {batch, 8, length, 12}));
    EXPECT_TRUE(reshaped({batch, length, 96}, {tokens, 96}));
    EXPECT_TRUE(reshaped({product({rows, length}), 12}, {tokens, 96}));
    EXPECT_FALSE(reshaped({length, batch, 96}, {length, rows, 96}));
    EXPECT_THAT(conditions("reshape", {TensorType{DType::f32, {tokens}}}, {{"new_shape", Shape{rows}}}),
                ElementsAre("batch*length = 8*batch"));
}

TEST(Reshape, IsItsInputWhenTheShapeStays) {
    const OpDef& op = *find_op("reshape");
    const TensorType x{DType::f32, {2, 3}};
    const TensorType* types[] = {&x};
    EXPECT_EQ(op.same_as(Operands(types), op.make_attrs({{"new_shape", Shape{2, 3}}}).value().get()), 0);
    EXPECT_EQ(op.same_as(Operands(types), op.make_attrs({{"new_shape", Shape{3, 2}}}).value().get()),
              std::nullopt);
}

}  // namespace
}  // namespace headrace::testing
