#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ArgReduce, FindsTheFirstExtremeAlongEachAxis) {
    const auto x = tensor(DType::f32, {2, 3}, {1, 5, 5, 7, 0, 0});
    EXPECT_THAT(values<int>("arg_max", {x}, along(1)), ElementsAre(1, 0));
    EXPECT_THAT(values<int>("arg_min", {x}, along(-1)), ElementsAre(0, 1));
    EXPECT_THAT(values<int>("arg_max", {x}, along(0)), ElementsAre(1, 0, 0));
    EXPECT_THAT(values<int>("arg_min", {x}, along(0)), ElementsAre(0, 1, 1));
    const auto middle = tensor(DType::f16, {2, 2, 2}, {1, 4, 3, 2, 5, 6, 7, 0});
    EXPECT_THAT(values<int>("arg_max", {middle}, along(1)), ElementsAre(1, 0, 1, 0));
}

TEST(ArgReduce, NanIsTheExtreme) {
    const double nan = std::nan("");
    for (const char* op : {"arg_max", "arg_min"}) {
        EXPECT_THAT(values<int>(op, {tensor(DType::f32, {4}, {1, nan, 9, nan})}, along(0)), ElementsAre(1))
            << op;
        EXPECT_THAT(values<int>(op, {tensor(DType::f32, {3}, {nan, 1, -1})}, along(0)), ElementsAre(0)) << op;
    }
}

TEST(ArgReduce, ComparesIntegersExactly) {
    const std::int64_t big = 9007199254740992;
    EXPECT_THAT(
        values<int>("arg_max", {tensor<std::int64_t>(DType::i64, {3}, {big, big + 1, -big})}, along(0)),
        ElementsAre(1));
    EXPECT_THAT(values<int>("arg_min", {tensor<std::uint64_t>(DType::u64, {2}, {UINT64_MAX, UINT64_MAX - 1})},
                            along(0)),
                ElementsAre(1));
}

TEST(ArgReduce, YieldsTheAskedTypeAndShape) {
    const TensorType x{DType::f32, {2, Dim::symbolic("n"), 4}};
    EXPECT_EQ(infer("arg_max", {x}, along(1)).value()[0].str(), "i32[2, 4]");
    EXPECT_EQ(infer("arg_min", {x},
                    {{"axis", std::int64_t{2}}, {"keep_dimensions", true}, {"output_data_type", DType::i64}})
                  .value()[0]
                  .str(),
              "i64[2, n, 1]");
    const auto wide = run("arg_max", {tensor(DType::i8, {3}, {-1, 3, 2})},
                          {{"axis", std::int64_t{0}}, {"output_data_type", DType::i64}});
    EXPECT_EQ(wide[0].type.str(), "i64[]");
    EXPECT_THAT(wide[0].as<int>(), ElementsAre(1));
}

TEST(ArgReduce, RejectsBadAxesTypesAndEmptyDimensions) {
    const TensorType x{DType::f32, {2, 0}};
    EXPECT_THAT(infer_error("arg_max", {x}, along(2)), HasSubstr("Axis 2 out of bounds for rank 2"));
    EXPECT_THAT(infer_error("arg_max", {TensorType{DType::f32, {}}}, along(0)),
                HasSubstr("Axis 0 out of bounds for rank 0"));
    EXPECT_THAT(infer_error("arg_max", {x}, along(1)), HasSubstr("dimension 1 of input [2, 0] is empty"));
    EXPECT_THAT(infer_error("arg_min", {x}), HasSubstr("axis is missing"));
    EXPECT_THAT(infer_error("arg_min", {x}, {{"axis", std::int64_t{0}}, {"output_data_type", DType::u8}}),
                HasSubstr("output_data_type is u8, must be i32 or i64"));
    EXPECT_THAT(infer_error("arg_max", {TensorType{DType::u8, {1LL << 32}}}, along(0)),
                HasSubstr("do not fit in i32"));
}

}  // namespace
}  // namespace headrace::testing
