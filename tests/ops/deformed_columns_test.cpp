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

TEST(DeformedColumns, LeavesOpenExtentsToARun) {
    const Dim n = Dim::symbolic("n"), c = Dim::symbolic("c"), h = Dim::symbolic("h", 4),
              m = Dim::symbolic("m");
    const NamedAttrs attrs{{"kernel", std::vector<std::int64_t>{2, 3}},
                           {"strides", std::vector<std::int64_t>{2, 1}},
                           {"offset_groups", std::int64_t{2}}};
    const std::vector<std::optional<TensorType>> open{TensorType{DType::f32, {n, c, h, 4}},
                                                      TensorType{DType::f32, {m, 24, 3, 2}},
                                                      TensorType{DType::f32, {n, 12, 3, 2}}};
    EXPECT_EQ(infer("deformed_columns", open, attrs).value()[0].str(), "f32[n, 6*c, 2*(h//2)]");
    EXPECT_THAT(conditions("deformed_columns", open, attrs),
                ElementsAre("c = 2*(c//2)", "m = n", "3 = (h//2)", "3 = (h//2)"));
    EXPECT_THAT(
        infer_error("deformed_columns",
                    {TensorType{DType::f32, {1, 3, n, n}}, TensorType{DType::f32, {1, 24, n, n}}}, attrs),
        HasSubstr("3 channels do not divide into 2 groups"));
}

TEST(DeformedColumns, NamesTheShapeThatOffsetsNeed) {
    EXPECT_THAT(infer_error("deformed_columns",
                            {TensorType{DType::f32, {1, 2, 4, 4}}, TensorType{DType::f32, {1, 8, 3, 4}}},
                            {{"kernel", std::vector<std::int64_t>{2, 2}}}),
                HasSubstr("offset [1, 8, 3, 4] must be [1, 8, 3, 3]"));
}

}  // namespace
}  // namespace headrace::testing
