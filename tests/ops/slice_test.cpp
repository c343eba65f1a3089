#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Integers = std::vector<std::int64_t>;

NamedAttrs box(Integers starts, Integers sizes) { return {{"starts", starts}, {"sizes", sizes}}; }
NamedAttrs box(Integers starts, Integers sizes, Integers strides) {
    return {{"starts", starts}, {"sizes", sizes}, {"strides", strides}};
}
const std::vector<double> kCounted{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

TEST(Slice, TakesABox) {
    EXPECT_THAT(values("slice", {tensor(DType::f32, {3, 4}, kCounted)}, box({1, 1}, {2, 2})),
                ElementsAre(5, 6, 9, 10));
    EXPECT_THAT(values<int>("slice", {tensor(DType::u4, {3, 4}, kCounted)}, box({1, 1}, {2, 3})),
                ElementsAre(5, 6, 7, 9, 10, 11));
}

TEST(Slice, StepsThroughTheBoxByStrides) {
    const auto out = run("slice", {tensor(DType::i64, {3, 4}, kCounted)}, box({0, 1}, {3, 3}, {2, 2}));
    EXPECT_EQ(out[0].type.str(), "i64[2, 2]");
    EXPECT_THAT(out[0].as<int>(), ElementsAre(1, 3, 9, 11));
}

TEST(Slice, MayBeEmptyOrScalar) {
    EXPECT_THAT(values("slice", {tensor(DType::f32, {3, 4}, kCounted)}, box({3, 0}, {0, 4})), IsEmpty());
    EXPECT_THAT(values("slice", {tensor(DType::f32, {}, {2})}, box({}, {})), ElementsAre(2));
}

TEST(Slice, RefusesBoxesThatLeaveTheInput) {
    const TensorType x{DType::f32, {3, 4}};
    EXPECT_EQ(infer_error("slice", {x}, box({0, 2}, {3, 3})),
              "start 2 and size 3 are out of bounds for dimension 1 of extent 4");
    EXPECT_THAT(infer_error("slice", {x}, box({INT64_MAX, 0}, {1, 1})), HasSubstr("out of bounds"));
    EXPECT_THAT(infer_error("slice", {x}, box({-1, 0}, {1, 1})), HasSubstr("start -1"));
    EXPECT_THAT(infer_error("slice", {x}, box({0, 0}, {1, 1}, {1, 0})), HasSubstr("stride 0 at least 1"));
    EXPECT_THAT(infer_error("slice", {x}, box({0}, {1, 1})),
                HasSubstr("one entry per dimension of [3, 4], got 1, 2"));
}

TEST(Slice, MayStartAtAnOpenPlace) {
    const Dim n = Dim::symbolic("n", 1, 100), from = Dim::of(Expression(n) - 3, Range{});
    const TensorType x{DType::f32, {n, 4}};
    const NamedAttrs last{{"starts", Shape{from, 0}}, {"sizes", Shape{3, 4}}};
    EXPECT_EQ(infer("slice", {x}, last).value()[0].str(), "f32[3, 4]");
    EXPECT_THAT(conditions("slice", {x}, last), ElementsAre("(n - 3) >= 0"));
    const Dim m = Dim::symbolic("m");
    const NamedAttrs any{{"starts", Shape{m, 0}}, {"sizes", Shape{n, 4}}};
    EXPECT_THAT(infer_error("slice", {x}, any), HasSubstr("start m and size n are out of bounds"));
}

TEST(Slice, KeepsSymbolicExtents) {
    const Dim n = Dim::symbolic("n", 1, 100);
    const TensorType x{DType::f32, {n, 4}};
    const NamedAttrs whole{{"starts", Integers{0, 1}}, {"sizes", Shape{n, 2}}};
    EXPECT_EQ(infer("slice", {x}, whole).value()[0].str(), "f32[n, 2]");
    EXPECT_EQ(infer("slice", {x}, box({0, 0}, {1, 4})).value()[0].str(), "f32[1, 4]");
    const NamedAttrs shifted{{"starts", Integers{1, 0}}, {"sizes", Shape{n, 4}}};
    EXPECT_THAT(infer_error("slice", {x}, shifted), HasSubstr("start 1 and size n are out of bounds"));
    EXPECT_THAT(infer_error("slice", {x}, box({90, 0}, {11, 4})), HasSubstr("out of bounds"));
    EXPECT_THAT(conditions("slice", {x}, box({2, 0}, {3, 4})), ElementsAre("n >= 5"));
    EXPECT_THAT(conditions("slice", {x}, whole), IsEmpty());
    const NamedAttrs stepped{{"starts", Integers{0, 0}}, {"sizes", Shape{n, 4}}, {"strides", Integers{2, 1}}};
    const Dim half = infer("slice", {x}, stepped).value()[0].shape[0];
    EXPECT_EQ(half.str(), "((n+1)//2)");
    EXPECT_EQ(half.max_size(), 50);
}

TEST(Split, GivesConsecutiveParts) {
    const auto parts = run("split", {tensor(DType::f16, {2, 6}, kCounted)},
                           {{"splits", Integers{1, 3, 2}}, {"axis", std::int64_t{-1}}});
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_THAT(parts[0].as<int>(), ElementsAre(0, 6));
    EXPECT_THAT(parts[1].as<int>(), ElementsAre(1, 2, 3, 7, 8, 9));
    EXPECT_THAT(parts[2].as<int>(), ElementsAre(4, 5, 10, 11));
}

TEST(Split, PacksEveryNibblePartAnew) {
    const auto parts = run("split", {tensor(DType::i4, {5}, {1, 2, 3, -4, 5})}, {{"splits", Integers{3, 2}}});
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_THAT(parts[0].as<int>(), ElementsAre(1, 2, 3));
    EXPECT_THAT(parts[1].as<int>(), ElementsAre(-4, 5));
}

TEST(Split, NeedsPartsThatAddUp) {
    const TensorType x{DType::f32, {4, 3}};
    EXPECT_EQ(infer_error("split", {x}, {{"splits", Integers{1, 2}}}),
              "splits [1, 2] must add up to 4, the extent of dimension 0 of [4, 3]");
    for (const Integers& splits : {Integers{5}, Integers{6, -2}, Integers{INT64_MAX, 5}, Integers{}})
        EXPECT_THAT(infer_error("split", {x}, {{"splits", splits}}), HasSubstr("must add up to 4"));
    EXPECT_THAT(infer_error("split", {x}, {{"splits", Integers{4}}, {"axis", std::int64_t{2}}}),
                HasSubstr("Axis 2 out of bounds for rank 2"));
    const TensorType open{DType::f32, {Dim::symbolic("n", 1, 9)}};
    EXPECT_THAT(conditions("split", {open}, {{"splits", Integers{4, 2}}}), ElementsAre("n = 6"));
    EXPECT_THAT(infer_error("split", {open}, {{"splits", Integers{4, 6}}}), HasSubstr("must add up to n"));
    const Dim n = open.shape[0], half = Dim::of(Expression(n) / 2),
              rest = Dim::of(Expression(n) - Expression(half));
    EXPECT_THAT(conditions("split", {open}, {{"splits", Shape{half, rest}}}), IsEmpty());
    EXPECT_EQ(infer("split", {open}, {{"splits", Shape{half, rest}}}).value()[1].shape[0], rest);
    EXPECT_THAT(conditions("split", {open}, {{"splits", Shape{half, half}}}), ElementsAre("n = 2*(n//2)"));
    EXPECT_THAT(infer_error("split", {TensorType{DType::f32, {}}}, {{"splits", Integers{1}}}),
                HasSubstr("input must have rank 1 to 8"));
}

TEST(Reverse, TurnsTheNamedAxesAround) {
    const auto x = tensor(DType::i32, {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_THAT(values<int>("reverse", {x}), ElementsAre(6, 5, 4, 3, 2, 1));
    EXPECT_THAT(values<int>("reverse", {x}, {{"axes", Integers{0}}}), ElementsAre(4, 5, 6, 1, 2, 3));
    EXPECT_THAT(values<int>("reverse", {x}, {{"axes", Integers{-1}}}), ElementsAre(3, 2, 1, 6, 5, 4));
    EXPECT_THAT(values<int>("reverse", {x}, {{"axes", Integers{}}}), ElementsAre(1, 2, 3, 4, 5, 6));
    EXPECT_THAT(values<int>("reverse", {tensor(DType::u4, {3}, {1, 2, 15})}), ElementsAre(15, 2, 1));
    EXPECT_THAT(values("reverse", {tensor(DType::f32, {2, 0}, {})}), IsEmpty());
}

TEST(Reverse, RefusesAxesTwiceOrOutside) {
    const TensorType x{DType::f32, {2, 3}};
    EXPECT_EQ(infer_error("reverse", {x}, {{"axes", Integers{1, -1}}}), "Duplicate axis -1");
    EXPECT_EQ(infer_error("reverse", {x}, {{"axes", Integers{2}}}), "Axis 2 out of bounds for rank 2");
}

}  // namespace
}  // namespace headrace::testing
