#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

TEST(Resample2d, NearestTakesTheLowerOfTwoEquallyNearElements) {
    const auto row = [](std::int64_t from, std::int64_t to) {
        std::vector<double> x(from);
        for (std::int64_t i = 0; i < from; ++i) x[i] = static_cast<double>(i);
        return values<int>("resample2d", {tensor(DType::f32, {1, 1, 1, from}, x)},
                           {{"sizes", Integers{1, to}}});
    };
    EXPECT_THAT(row(2, 3), ElementsAre(0, 0, 1));  // 0.5 is a tie
    EXPECT_THAT(row(4, 2), ElementsAre(0, 2));     // 0.5 and 2.5 are ties
    EXPECT_THAT(row(5, 2), ElementsAre(1, 3));     // 0.75 and 3.25
    EXPECT_THAT(row(1, 4), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(row(2, 4), ElementsAre(0, 0, 1, 1));
}

TEST(Resample2d, LinearBlendsAtHalfPixelCenters) {
    const auto x = tensor(DType::f32, {1, 1, 1, 2}, {10, 20});
    EXPECT_THAT(values("resample2d", {x}, {{"sizes", Integers{1, 4}}, {"mode", "linear"}}),
                ElementsAre(10, 12.5, 17.5, 20));
    // Hand-computed for 2x2 -> 1x1: the mean of all four.
    EXPECT_THAT(values("resample2d", {tensor(DType::f64, {1, 1, 2, 2}, {1, 2, 3, 10})},
                       {{"scales", Reals{0.5, 0.5}}, {"mode", "linear"}}),
                ElementsAre(4));
    EXPECT_THAT(values<int>("resample2d", {tensor(DType::u8, {1, 1, 1, 2}, {0, 255})},
                            {{"sizes", Integers{1, 4}}, {"mode", "linear"}}),
                ElementsAre(0, 64, 191, 255));
}

TEST(ResampleLinear2d, PointsLieWhereTheCoordinatesSay) {
    const auto x = tensor(DType::f32, {1, 1, 1, 3}, {0, 10, 20});
    const auto resized = [&](std::int64_t to, const char* how) {
        return values("resample_linear2d", {x},
                      {{"sizes", Integers{1, to}}, {"coordinates", std::string(how)}});
    };
    EXPECT_THAT(resized(5, "corners"), ElementsAre(0, 5, 10, 15, 20));
    EXPECT_THAT(resized(1, "corners"), ElementsAre(0));
    EXPECT_THAT(resized(6, "edges"), ElementsAre(0, 5, 10, 15, 20, 20));
    EXPECT_THAT(resized(1, "half_pixel"), ElementsAre(10));
    EXPECT_THAT(resized(1, "half_pixel_or_first"), ElementsAre(0));
    EXPECT_EQ(resized(7, "half_pixel_or_first"), resized(7, "half_pixel"));
}

TEST(Resample2d, BlendsChannelsInsideThePlanesSeparately) {
    const auto out = run("resample2d", {tensor(DType::f32, {1, 1, 2, 2}, {0, 100, 8, 200})},
                         {{"sizes", Integers{1, 4}}, {"axes", Integers{1, 2}}, {"mode", "linear"}});
    EXPECT_EQ(out[0].type.str(), "f32[1, 1, 4, 2]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(0, 100, 2, 125, 6, 175, 8, 200));
}

TEST(Resample2d, ResizesDimensionsThatAreApart) {
    const auto x = tensor(DType::f32, {2, 1, 2, 2}, {0, 1, 2, 3, 8, 9, 10, 11});
    EXPECT_THAT(values("resample2d", {x}, {{"sizes", Integers{1, 4}}, {"axes", Integers{0, 3}}}),
                ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
    EXPECT_THAT(
        values("resample2d", {x}, {{"sizes", Integers{4, 2}}, {"axes", Integers{0, 2}}, {"mode", "linear"}}),
        ElementsAre(0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 8, 9, 8, 9, 10, 11));
    EXPECT_THAT(
        values("resample2d", {x}, {{"sizes", Integers{4, 2}}, {"axes", Integers{3, 1}}, {"mode", "linear"}}),
        ElementsAre(0, .25, .75, 1, 2, 2.25, 2.75, 3, 0, .25, .75, 1, 2, 2.25, 2.75, 3,  //
                    8, 8.25, 8.75, 9, 10, 10.25, 10.75, 11, 8, 8.25, 8.75, 9, 10, 10.25, 10.75, 11));
}

TEST(Resample2d, KeepsInfinityAwayFromElementsItDoesNotTouch) {
    const double inf = std::numeric_limits<double>::infinity();
    const auto out = values("resample2d", {tensor(DType::f32, {1, 1, 1, 3}, {1, inf, 3})},
                            {{"sizes", Integers{2, 3}}, {"mode", "linear"}});
    EXPECT_THAT(out, ElementsAre(1, inf, 3, 1, inf, 3));
}

TEST(Resample2d, SizesOverrideScalesAndFollowTheAxesOrder) {
    EXPECT_EQ(infer("resample2d", {TensorType{DType::f32, {1, 2, 3, 2}}},
                    {{"sizes", Integers{3, 4}}, {"scales", Reals{99, 99}}, {"axes", Integers{3, 2}}})
                  .value()[0]
                  .str(),
              "f32[1, 2, 4, 3]");
    EXPECT_EQ(infer("resample2d", {TensorType{DType::f32, {1, 1, 4, 6}}}, {{"scales", Reals{0.5, 0.4}}})
                  .value()[0]
                  .str(),
              "f32[1, 1, 2, 2]");
}

TEST(Resample2d, SaysWhatItTakes) {
    const TensorType x{DType::f32, {1, 2, 3, 4}};
    EXPECT_THAT(infer_error("resample2d", {TensorType{DType::f32, {3, 4}}}),
                HasSubstr("input must be 4D, got rank 2"));
    EXPECT_EQ(infer_error("resample2d", {x}, {{"axes", Integers{2}}}), "axes [2] must be two dimensions");
    EXPECT_EQ(infer_error("resample2d", {x}, {{"axes", Integers{3, 3}}}), "Duplicate axis 3");
    EXPECT_EQ(infer_error("resample2d", {x}, {{"axes", Integers{3, 4}}}), "Axis 4 out of bounds for rank 4");
    EXPECT_THAT(infer_error("resample2d", {x}, {{"sizes", Integers{0, 4}}}), HasSubstr("at least 1"));
    EXPECT_THAT(infer_error("resample2d", {x}, {{"sizes", Integers{4}}}),
                HasSubstr("sizes must have one entry per axis, got 1"));
    EXPECT_THAT(infer_error("resample2d", {x}, {{"scales", Reals{1, 1, 1}}}),
                HasSubstr("scales must have one entry per axis, got 3"));
    EXPECT_THAT(infer_error("resample2d", {x}, {{"scales", Reals{0.1, 1}}}),
                HasSubstr("scales[0] is 0.1, which leaves nothing of extent 3"));
    EXPECT_THAT(infer_error("resample2d", {x}, {{"sizes", Integers{3, 3}}, {"scales", Reals{0, 1}}}),
                HasSubstr("scales[0] is 0; it must be greater than 0"));
    for (const double scale : {0.0, -1.0, std::nan(""), HUGE_VAL, 1e30})
        EXPECT_THAT(infer_error("resample2d", {x}, {{"scales", Reals{1, scale}}}),
                    AllOf(HasSubstr("scales[1] is "), HasSubstr("greater than 0 and less than 9.0072e+15")));
}

}  // namespace
}  // namespace headrace::testing
