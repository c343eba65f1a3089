#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Three boxes of which the first two overlap by 0.8, and a fourth apart.
TestTensor boxes() {
    return tensor(DType::f32, {1, 4, 4}, {0, 0, 10, 10, 0, 0, 10, 8, 20, 20, 30, 30, 40, 40, 41, 41});
}

std::vector<std::int64_t> chosen(const TestTensor& scores, std::int64_t most, double overlap,
                                 std::optional<double> least = {}, const NamedAttrs& attrs = {}) {
    OptionalTensors in{boxes(), scores, tensor(DType::i64, {}, {static_cast<double>(most)}),
                       tensor(DType::f32, {1}, {overlap})};
    if (least) in.push_back(tensor(DType::f32, {1}, {*least}));
    const auto out = run("non_max_suppression", in, attrs);
    auto rows = out[0].as<std::int64_t>();
    rows.resize(static_cast<std::size_t>(3 * out[1].as<std::int64_t>()[0]));
    return rows;
}

TEST(NonMaxSuppression, KeepsTheBestOfBoxesThatOverlap) {
    const auto scores = tensor(DType::f32, {1, 1, 4}, {0.5, 0.9, 0.1, 0.7});
    EXPECT_THAT(chosen(scores, 9, 0.5), ElementsAre(0, 0, 1, 0, 0, 3, 0, 0, 2));
    EXPECT_THAT(chosen(scores, 9, 0.9), ElementsAre(0, 0, 1, 0, 0, 3, 0, 0, 0, 0, 0, 2));
    EXPECT_THAT(chosen(scores, 2, 0.5), ElementsAre(0, 0, 1, 0, 0, 3));
    EXPECT_THAT(chosen(scores, 9, 0.5, 0.6), ElementsAre(0, 0, 1, 0, 0, 3));
    EXPECT_THAT(chosen(scores, 0, 0.5), ElementsAre());
}

TEST(NonMaxSuppression, GoesThroughEachClass) {
    const auto scores = tensor(DType::f32, {1, 2, 4}, {0.5, 0.9, 0, 0, 0.9, 0.5, 0, 0});
    EXPECT_THAT(chosen(scores, 1, 0.5, {}, {{"room", std::int64_t{1}}}), ElementsAre(0, 0, 1, 0, 1, 0));
}

TEST(NonMaxSuppression, HasRoomForAllThatAreAskedFor) {
    const Dim n = Dim::symbolic("n");
    const TensorType open{DType::f32, {2, n, 4}}, scores{DType::f32, {2, 3, n}}, one{DType::i64, {}},
        real{DType::f32, {}};
    EXPECT_EQ(infer("non_max_suppression", {open, scores, one, real}).value()[0].str(), "i64[6*n, 3]");
    EXPECT_EQ(
        infer("non_max_suppression", {open, scores, one, real}, {{"room", std::int64_t{5}}}).value()[0].str(),
        "i64[6*Min(5, n), 3]");
    EXPECT_THAT(infer_error("non_max_suppression", {TensorType{DType::f32, {2, 5, 5}}, scores, one, real}),
                HasSubstr("must be [batches, boxes, 4] and [batches, classes, boxes]"));
}

TEST(Unique, SaysWhereEachIsFirstWhichOneEachIsAndHowOften) {
    const auto out = run("unique", {tensor(DType::f32, {6}, {2, 1, 1, 3, 4, 3})});
    EXPECT_THAT(out[3].as<std::int64_t>(), ElementsAre(4));
    EXPECT_THAT(out[0].as<std::int64_t>(), ElementsAre(1, 0, 3, 4, 0, 0));
    EXPECT_THAT(out[1].as<std::int64_t>(), ElementsAre(1, 0, 0, 2, 3, 2));
    EXPECT_THAT(out[2].as<std::int64_t>(), ElementsAre(2, 1, 2, 1, 0, 0));
}

TEST(Unique, KeepsTheOrderWhereItDoesNotSort) {
    const auto out = run("unique", {tensor(DType::i32, {4}, {7, 3, 7, 5})}, {{"sorted", false}});
    EXPECT_THAT(out[0].as<std::int64_t>(), ElementsAre(0, 1, 3, 0));
    EXPECT_THAT(out[1].as<std::int64_t>(), ElementsAre(0, 1, 0, 2));
}

TEST(Unique, ComparesRows) {
    const auto out = run("unique", {tensor(DType::i64, {3, 2}, {1, 2, 1, 0, 1, 2})});
    EXPECT_THAT(out[3].as<std::int64_t>(), ElementsAre(2));
    EXPECT_THAT(out[0].as<std::int64_t>(), ElementsAre(1, 0, 0));
}

}  // namespace
}  // namespace headrace::testing
