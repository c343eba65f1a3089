#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;

NamedAttrs by(const char* reduction, std::int64_t axis = 0) {
    return {{"axis", axis}, {"reduction", std::string(reduction)}};
}

TEST(ScatterReduce, CombinesAllUpdatesOfAnElementWithIt) {
    const auto x = tensor(DType::f32, {3}, {1, 2, 3}), updates = tensor(DType::f32, {4}, {5, 4, 7, 0.5});
    const auto indices = tensor(DType::i64, {4}, {0, 2, 0, -1});
    EXPECT_THAT(values("scatter_reduce", {x, indices, updates}, by("sum")), ElementsAre(13, 2, 7.5));
    EXPECT_THAT(values("scatter_reduce", {x, indices, updates}, by("product")), ElementsAre(35, 2, 6));
    EXPECT_THAT(values("scatter_reduce", {x, indices, updates}, by("max")), ElementsAre(7, 2, 4));
    EXPECT_THAT(values("scatter_reduce", {x, indices, updates}, by("min")), ElementsAre(1, 2, 0.5));
}

TEST(ScatterReduce, PointsAlongTheAxis) {
    const auto x = tensor(DType::i32, {2, 3}, {1, 2, 3, 4, 5, 6});
    const auto indices = tensor(DType::i32, {2, 2}, {0, 0, 2, 1}),
               updates = tensor(DType::i32, {2, 2}, {10, 20, 30, 40});
    EXPECT_THAT(values<int>("scatter_reduce", {x, indices, updates}, by("sum", 1)),
                ElementsAre(31, 2, 3, 4, 45, 36));
    EXPECT_THAT(
        values<int>("scatter_reduce", {x, tensor(DType::i32, {2, 2}, {0, 1, 0, 1}), updates}, by("sum")),
        ElementsAre(41, 2, 3, 4, 65, 6));
}

TEST(ScatterReduce, NeedsEqualIndicesAndUpdates) {
    EXPECT_EQ(infer_error("scatter_reduce", {TensorType{DType::f32, {3}}, TensorType{DType::i64, {2}},
                                             TensorType{DType::f32, {3}}}),
              "Shape mismatch: indices [2] and updates [3] must be equal");
}

}  // namespace
}  // namespace headrace::testing
