#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NamedAttrs ordered(std::int64_t axis, bool descending = false) {
    return {{"axis", axis}, {"descending", descending}};
}

TEST(Sort, GivesElementsAndPositionsAlongEachAxis) {
    const auto x = tensor(DType::f32, {2, 3}, {3, 1, 2, 0, 5, -4});
    const auto rows = run("sort", {x}, ordered(-1));
    EXPECT_THAT(rows[0].as<float>(), ElementsAre(1, 2, 3, -4, 0, 5));
    EXPECT_THAT(rows[1].as<int>(), ElementsAre(1, 2, 0, 2, 0, 1));
    const auto columns = run("sort", {x}, ordered(0, true));
    EXPECT_THAT(columns[0].as<float>(), ElementsAre(3, 5, 2, 0, 1, -4));
    EXPECT_THAT(columns[1].as<int>(), ElementsAre(0, 1, 0, 1, 0, 1));
}

TEST(Sort, KeepsTheOrderOfEqualElementsInBothDirections) {
    const auto x = tensor(DType::i32, {5}, {2, 1, 2, 1, 3});
    EXPECT_THAT(run("sort", {x}, ordered(0))[1].as<int>(), ElementsAre(1, 3, 0, 2, 4));
    EXPECT_THAT(run("sort", {x}, ordered(0, true))[1].as<int>(), ElementsAre(4, 0, 2, 1, 3));
}

TEST(Sort, NanIsLargest) {
    const auto x = tensor(DType::f32, {4}, {1, std::nan(""), INFINITY, 0});
    EXPECT_THAT(run("sort", {x}, ordered(0))[1].as<int>(), ElementsAre(3, 0, 2, 1));
    EXPECT_THAT(run("sort", {x}, ordered(0, true))[1].as<int>(), ElementsAre(1, 2, 0, 3));
}

TEST(Sort, GivesTheFirstFewWhenCounted) {
    const auto x = tensor(DType::f16, {2, 4}, {3, 1, 2, 9, 0, 5, -4, 1});
    NamedAttrs attrs = ordered(1, true);
    attrs.emplace_back("count", std::int64_t{2});
    const auto top = run("sort", {x}, attrs);
    EXPECT_THAT(top[0].as<float>(), ElementsAre(9, 3, 5, 1));
    EXPECT_THAT(top[1].as<int>(), ElementsAre(3, 0, 1, 3));
}

TEST(Sort, RefusesMoreElementsThanThereAre) {
    NamedAttrs attrs = ordered(0);
    attrs.emplace_back("count", std::int64_t{4});
    EXPECT_THAT(infer_error("sort", {TensorType{DType::f32, {3}}}, attrs),
                HasSubstr("count is 4, must be within 0 and 3, the extent of dimension 0"));
}

}  // namespace
}  // namespace headrace::testing
