#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeformedColumns, MovesEachElementByItsOffset) {
    const auto x = tensor(DType::f32, {1, 1, 2, 3}, {0, 1, 2, 3, 4, 5});
    std::vector<double> offset(2 * 6, 0.0);
    offset[0] = 0.5;    // down, of the first place
    offset[6 + 1] = 1;  // to the right, of the second
    offset[6 + 5] = 9;  // outside, of the last
    const NamedAttrs attrs{{"kernel", std::vector<std::int64_t>{1, 1}}};
    EXPECT_THAT(values("deformed_columns", {x, tensor(DType::f32, {1, 2, 2, 3}, offset)}, attrs),
                ElementsAre(1.5, 2, 2, 3, 4, 0));
    const auto mask = tensor(DType::f32, {1, 1, 2, 3}, {1, 2, 0, 1, 1, 1});
    EXPECT_THAT(values("deformed_columns", {x, tensor(DType::f32, {1, 2, 2, 3}, offset), mask}, attrs),
                ElementsAre(1.5, 4, 0, 3, 4, 0));
}

TEST(DeformedColumns, NamesTheShapeThatOffsetsNeed) {
    EXPECT_THAT(infer_error("deformed_columns",
                            {TensorType{DType::f32, {1, 2, 4, 4}}, TensorType{DType::f32, {1, 8, 3, 4}}},
                            {{"kernel", std::vector<std::int64_t>{2, 2}}}),
                HasSubstr("offset [1, 8, 3, 4] must be [1, 8, 3, 3]"));
}

}  // namespace
}  // namespace headrace::testing
