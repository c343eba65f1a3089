#include <gmock/gmock.h>

#include "ir/kernel_error.h"
#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> checked(const std::vector<std::int64_t>& indices, Shape shape, Shape extents) {
    return values<std::int64_t>("checked_indices",
                                {tensor<std::int64_t>(DType::i64, std::move(shape), indices)},
                                {{"extents", std::move(extents)}});
}

TEST(CheckedIndices, AreTheIndicesThatLieWithinTheirExtents) {
    EXPECT_THAT(checked({0, 4, -5}, {3}, {5}), ElementsAre(0, 4, -5));
    EXPECT_THAT(checked({0, 4, 2, -5}, {2, 2}, {3, 5}), ElementsAre(0, 4, 2, -5));
}

TEST(CheckedIndices, ThrowWithTheFirstOneOutside) {
    EXPECT_THROW(checked({0, 5}, {2}, {5}), KernelError);
    EXPECT_THROW(checked({-6}, {1}, {5}), KernelError);
    EXPECT_THROW(checked({0, 0, 3, 0}, {2, 2}, {3, 5}), KernelError);
}

TEST(CheckedIndices, NeedAnExtentForEachOfATuple) {
    EXPECT_THAT(infer_error("checked_indices", {TensorType{DType::i64, {2, 3}}}, {{"extents", Shape{3, 5}}}),
                HasSubstr("are 2 for indices [2, 3]"));
}

}  // namespace
}  // namespace headrace::testing
