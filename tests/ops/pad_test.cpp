#include <gmock/gmock.h>

#include <limits>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Integers = std::vector<std::int64_t>;

NamedAttrs margin(Integers before, Integers after, NamedAttrs more = {}) {
    more.emplace_back("beginning_padding", std::move(before));
    more.emplace_back("ending_padding", std::move(after));
    return more;
}

TEST(Pad, SurroundsWithTheValue) {
    const auto x = tensor(DType::f32, {2, 2}, {1, 2, 3, 4});
    EXPECT_THAT(values("pad", {x}, margin({1, 0}, {0, 2})), ElementsAre(0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0));
    EXPECT_THAT(values("pad", {x}, margin({0, 1}, {0, 0}, {{"value", 7.5}})),
                ElementsAre(7.5, 1, 2, 7.5, 3, 4));
    EXPECT_THAT(values("pad", {x}, margin({1, 0}, {0, 0})), ElementsAre(0, 0, 1, 2, 3, 4));
    EXPECT_THAT(values("pad", {tensor(DType::f32, {}, {3})}, margin({}, {})), ElementsAre(3));
    EXPECT_THAT(values("pad", {tensor(DType::f32, {0}, {})}, margin({1}, {1}, {{"value", 2.0}})),
                ElementsAre(2, 2));
}

TEST(Pad, RepeatsTheEdge) {
    EXPECT_THAT(
        values("pad", {tensor(DType::f32, {2, 2}, {1, 2, 3, 4})}, margin({1, 0}, {0, 2}, {{"mode", "edge"}})),
        ElementsAre(1, 2, 2, 2, 1, 2, 2, 2, 3, 4, 4, 4));
    // An unpadded dimension inside a padded one moves as a whole.
    EXPECT_THAT(
        values("pad", {tensor(DType::f32, {2, 2}, {1, 2, 3, 4})}, margin({0, 0}, {1, 0}, {{"mode", "edge"}})),
        ElementsAre(1, 2, 3, 4, 3, 4));
}

TEST(Pad, MirrorsWithoutRepeatingTheEdge) {
    EXPECT_THAT(values<int>("pad", {tensor(DType::u8, {4}, {1, 2, 3, 4})},
                            margin({3}, {2}, {{"mode", "reflection"}})),
                ElementsAre(4, 3, 2, 1, 2, 3, 4, 3, 2));
    EXPECT_THAT(values<int>("pad", {tensor(DType::i16, {3, 2}, {1, 2, 3, 4, 5, 6})},
                            margin({2, 0}, {0, 0}, {{"mode", "reflection"}})),
                ElementsAre(5, 6, 3, 4, 1, 2, 3, 4, 5, 6));
}

TEST(Pad, KeepsWideIntegersExactAndSaturatesReals) {
    const std::int64_t wide = (std::int64_t{1} << 62) + 1;
    const auto x = tensor<std::int64_t>(DType::i64, {1}, {5});
    EXPECT_THAT(values<std::int64_t>("pad", {x}, margin({1}, {0}, {{"value", wide}})), ElementsAre(wide, 5));
    EXPECT_THAT(values<int>("pad", {tensor(DType::i8, {1}, {5})}, margin({1}, {0}, {{"value", 1e9}})),
                ElementsAre(127, 5));
    EXPECT_THAT(values<int>("pad", {tensor(DType::u8, {1}, {5})}, margin({1}, {0}, {{"value", -1.0}})),
                ElementsAre(0, 5));
    EXPECT_THAT(values<int>("pad", {tensor(DType::i32, {1}, {5})},
                            margin({1}, {0}, {{"value", std::numeric_limits<double>::quiet_NaN()}})),
                ElementsAre(0, 5));
    EXPECT_THAT(values<int>("pad", {tensor(DType::i4, {1}, {5})}, margin({1}, {1}, {{"value", -2.0}})),
                ElementsAre(-2, 5, -2));
}

TEST(Pad, SaysWhatTheMarginsMayBe) {
    const TensorType x{DType::f32, {3, 2}};
    EXPECT_EQ(infer_error("pad", {x}, margin({1}, {1, 1})),
              "beginning_padding [1] and ending_padding [1, 1] need one entry per dimension of [3, 2]");
    EXPECT_EQ(infer_error("pad", {x}, margin({0, -1}, {0, 0})),
              "dimension 1: padding -1 and 0 must not be negative");
    EXPECT_EQ(infer_error("pad", {x}, margin({0, 2}, {0, 0}, {{"mode", "reflection"}})),
              "dimension 1: reflection padding 2 and 0 must be less than the extent 2");
    EXPECT_THAT(infer_error("pad", {TensorType{DType::f32, {0}}}, margin({1}, {0}, {{"mode", "edge"}})),
                HasSubstr("no edge"));
    EXPECT_THAT(infer_error("pad", {x}, margin({0, INT64_MAX}, {0, 1})),
                HasSubstr("more than the largest integer"));
    EXPECT_THAT(infer_error("pad", {x}, margin({0, 0}, {0, 0}, {{"mode", "symmetric"}})), HasSubstr("mode"));
    const TensorType n{DType::f32, {Dim::symbolic("n", 1, 8)}};
    EXPECT_EQ(infer("pad", {n}, margin({1}, {2})).value()[0].str(), "f32[(n+3)]");
}

TEST(Pad, MayAddAnOpenNumberOfElements) {
    const Dim n = Dim::symbolic("n", 1, 8), rest = Dim::of(Expression(8) - Expression(n));
    const TensorType x{DType::f32, {n}};
    EXPECT_EQ(
        infer("pad", {x}, {{"beginning_padding", Shape{0}}, {"ending_padding", Shape{rest}}}).value()[0],
        (TensorType{DType::f32, {8}}));
    const NamedAttrs mirrored{
        {"beginning_padding", Shape{n}}, {"ending_padding", Shape{0}}, {"mode", "reflection"}};
    EXPECT_THAT(infer_error("pad", {x}, mirrored), HasSubstr("must be less than the extent n"));
}

}  // namespace
}  // namespace headrace::testing
