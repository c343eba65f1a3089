#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int> triangle(DType t, Shape shape, const std::vector<double>& x, bool upper,
                          std::int64_t diagonal) {
    return values<int>("triangular", {tensor(t, std::move(shape), x)},
                       {{"upper", upper}, {"diagonal", diagonal}});
}

TEST(Triangular, KeepsTheUpperTriangleByDefault) {
    EXPECT_THAT(values("triangular", {tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})}),
                ElementsAre(1, 2, 3, 0, 5, 6));
}

/// Every diagonal of tall and wide matrices, element by element.
TEST(Triangular, ComparesColumnMinusRowWithTheDiagonal) {
    for (const auto& [height, width] : {std::pair{2, 4}, std::pair{4, 2}, std::pair{3, 3}}) {
        std::vector<double> x;
        for (int i = 0; i < 2 * height * width; ++i) x.push_back(i + 1);
        for (const bool upper : {true, false})
            for (int diagonal = -5; diagonal <= 5; ++diagonal) {
                std::vector<int> expected;
                for (int i = 0; i < 2 * height * width; ++i) {
                    const int over = i % width - i / width % height;
                    expected.push_back((upper ? over >= diagonal : over <= diagonal) ? i + 1 : 0);
                }
                EXPECT_EQ(triangle(DType::i16, {2, height, width}, x, upper, diagonal), expected)
                    << height << "x" << width << " upper " << upper << " diagonal " << diagonal;
            }
    }
}

TEST(Triangular, TakesExtremeDiagonalsAndNibbles) {
    EXPECT_THAT(triangle(DType::i8, {2, 2}, {1, 2, 3, 4}, true, INT64_MIN), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(triangle(DType::i8, {2, 2}, {1, 2, 3, 4}, true, INT64_MAX), ElementsAre(0, 0, 0, 0));
    EXPECT_THAT(triangle(DType::i8, {2, 2}, {1, 2, 3, 4}, false, INT64_MAX), ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(triangle(DType::u4, {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}, false, 0),
                ElementsAre(1, 0, 0, 4, 5, 0, 7, 8, 9));
}

TEST(Triangular, NeedsMatrices) {
    EXPECT_THAT(infer_error("triangular", {TensorType{DType::f32, {3}}}),
                HasSubstr("input must have rank 2 to 8"));
}

}  // namespace
}  // namespace headrace::testing
