#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Where, TakesEachElementFromOneSide) {
    EXPECT_THAT(
        values("where", {tensor(DType::u8, {4}, {1, 0, 255, 0}), tensor(DType::f32, {4}, {1, 2, 3, 4}),
                         tensor(DType::f32, {4}, {-1, -2, -3, -4})}),
        ElementsAre(1, -2, 3, -4));
}

TEST(Where, DoesNotMixInTheOtherSidesNan) {
    const double nan = std::nan("");
    EXPECT_THAT(values("where", {tensor(DType::u8, {2}, {1, 0}), tensor(DType::f32, {2}, {1, nan}),
                                 tensor(DType::f32, {2}, {nan, 2})}),
                ElementsAre(1, 2));
}

TEST(Where, BroadcastsAllThreeOperands) {
    const auto out = run("where", {tensor(DType::boolean, {2, 1, 1}, {1, 0}),
                                   tensor(DType::i32, {2, 1}, {10, 20}), tensor(DType::i32, {3}, {1, 2, 3})});
    EXPECT_EQ(out[0].type.str(), "i32[2, 2, 3]");
    EXPECT_THAT(out[0].as<int>(), ElementsAre(10, 10, 10, 20, 20, 20, 1, 2, 3, 1, 2, 3));
}

TEST(Where, RepeatsAnyOfTheThreeAlongARow) {
    std::vector<double> condition, yes, no;
    for (int i = 0; i < 40; ++i) condition.push_back(i % 3 == 0), yes.push_back(i), no.push_back(-i - 1);
    for (const bool one_condition : {false, true})
        for (const bool one_yes : {false, true})
            for (const bool one_no : {false, true})
                for (const double first : {0.0, 1.0}) {
                    const auto repeated = [&](DType t, bool is_one, double value, const auto& row) {
                        return is_one ? tensor(t, {}, {value}) : tensor(t, {40}, row);
                    };
                    const auto out = run("where", {repeated(DType::u8, one_condition, first, condition),
                                                   repeated(DType::f32, one_yes, 5, yes),
                                                   repeated(DType::f32, one_no, -5, no)});
                    const auto result = out[0].template as<float>();
                    for (std::size_t i = 0; i < result.size(); ++i) {
                        const bool chosen = one_condition ? first != 0 : condition[i] != 0;
                        EXPECT_EQ(result[i], chosen ? (one_yes ? 5 : yes[i]) : (one_no ? -5 : no[i])) << i;
                    }
                }
}

TEST(Where, MovesEveryElementSize) {
    for (DType t : {DType::i4, DType::u4, DType::boolean, DType::u8, DType::i8, DType::f16, DType::bf16,
                    DType::i16, DType::u32, DType::f64, DType::u64})
        EXPECT_THAT(values<int>("where", {tensor(DType::u8, {3}, {1, 0, 1}), tensor(t, {3}, {1, 1, 1}),
                                          tensor(t, {}, {0})}),
                    ElementsAre(1, 0, 1))
            << name_of(t);
    EXPECT_THAT(values<int>("where", {tensor(DType::u8, {3}, {1, 0, 1}), tensor(DType::i4, {3}, {-8, -7, 7}),
                                      tensor(DType::i4, {3}, {1, -2, 3})}),
                ElementsAre(-8, -2, 7));
}

TEST(Where, RejectsWrongTypesAndShapes) {
    const TensorType c{DType::u8, {2}}, x{DType::f32, {2}}, three{DType::f32, {3}};
    EXPECT_THAT(infer_error("where", {x, x, x}), HasSubstr("f32"));
    EXPECT_THAT(infer_error("where", {c, x, TensorType{DType::i32, {2}}}), HasSubstr("i32"));
    EXPECT_THAT(infer_error("where", {c, x, three}), HasSubstr("Incompatible shapes [2] and [3]"));
    EXPECT_THAT(infer_error("where", {c, three, three}), HasSubstr("Incompatible shapes [2] and [3]"));
}

}  // namespace
}  // namespace headrace::testing
