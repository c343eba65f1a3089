#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CacheUpdate, WritesSlicesWhereThePositionsSay) {
    const auto state = tensor(DType::f32, {2, 3, 1}, {1, 2, 3, 4, 5, 6});
    const auto positions = tensor<std::int64_t>(DType::i64, {2}, {2, 0});
    EXPECT_THAT(
        values("cache_update", {state, positions, tensor(DType::f32, {2, 2, 1}, {7, 8, 9, 10})}, along(1)),
        ElementsAre(8, 2, 7, 10, 5, 9));
    EXPECT_THAT(
        values("cache_update",
               {state, tensor(DType::i32, {1}, {1}), tensor(DType::f32, {1, 3, 1}, {7, 8, 9})}, along(0)),
        ElementsAre(1, 2, 3, 7, 8, 9));
}

TEST(CacheUpdate, CountsNegativePositionsFromTheEndAndClampsTheRest) {
    const auto state = tensor(DType::f32, {3}, {1, 2, 3});
    const auto positions = tensor(DType::i32, {3}, {-2, 9, -9});
    EXPECT_THAT(values("cache_update", {state, positions, tensor(DType::f32, {3}, {7, 8, 9})}, along(-1)),
                ElementsAre(9, 7, 8));
}

TEST(CacheUpdate, LetsTheLastOfEqualPositionsWin) {
    const auto state = tensor(DType::f16, {2}, {1, 2}), update = tensor(DType::f16, {3}, {7, 8, 9});
    EXPECT_THAT(values("cache_update", {state, tensor(DType::i32, {3}, {1, 1, 1}), update}, along(0)),
                ElementsAre(1, 9));
}

TEST(CacheUpdate, RefusesUpdatesOfAnotherShape) {
    const auto state = tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), positions = tensor(DType::i32, {1}, {1});
    EXPECT_THAT(
        error("cache_update", {state, positions, state}, along(0)),
        HasSubstr("update has shape [2, 2]; 1 positions in dimension 0 of a state [2, 2] take [1, 2]"));
    EXPECT_THAT(error("cache_update", {state, positions, state}, along(2)), HasSubstr("2"));
}

}  // namespace
}  // namespace headrace::testing
