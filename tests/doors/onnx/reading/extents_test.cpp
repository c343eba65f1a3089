#include "doors/onnx/reading/extents.h"

#include <gmock/gmock.h>

#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

const Dim kN = Dim::symbolic("n"), kM = Dim::symbolic("m");

TEST(OnnxExtents, KeepNumbersNumbersAndRefuseTheirOverflow) {
    EXPECT_TRUE((Dim(3) * 4 + 2).is(14));
    EXPECT_TRUE(divided_down(-7, 2).is(-4));
    EXPECT_TRUE(divided_up(-7, 2).is(-3));
    EXPECT_TRUE(rest(-7, 3).is(2));
    EXPECT_THROW(Dim(INT64_MAX) + 1, Undecided);
    EXPECT_THROW(Dim(INT64_MIN) * -1, Undecided);
    EXPECT_THROW(divided_down(INT64_MIN, -1), Undecided);
    EXPECT_THROW(divided_down(kN, 0), Refused);
}

TEST(OnnxExtents, AnswerQuestionsOfOpenOnesWithZeroOneOrAnExpression) {
    EXPECT_TRUE(less(kN, kN + 1).is(1));
    EXPECT_TRUE(equal(kN, kN + 1).is(0));
    EXPECT_TRUE(equal(kN, kM).is_symbolic());
    EXPECT_TRUE(either(1, kN, kM) == kN);
    EXPECT_TRUE(either(less(kN, 3), kN, 3).is_symbolic());
    EXPECT_THROW(is_less(kN, 3), Undecided);
}

TEST(OnnxExtents, DividePolynomialsExactlyOrNotAtAll) {
    const auto quotient = exact_quotient((kN - 1) * kM * 64, (kN - 1) * kM);
    ASSERT_TRUE(quotient);
    EXPECT_TRUE(quotient->is(64));
    EXPECT_TRUE(is_same(exact_quotient(kN * kN - Dim(1), kN - 1).value_or(0), kN + 1));
    EXPECT_FALSE(exact_quotient(kN, 2));
    EXPECT_FALSE(exact_quotient(kN, 0));
    EXPECT_FALSE(exact_quotient(7, 2));
    EXPECT_FALSE(exact_quotient(kN, kN + 1));
    EXPECT_TRUE(exact_quotient(0, kN).value_or(1).is(0));
}

TEST(OnnxExtents, DivideProductsByTheirFactorsWhateverTheirSign) {
    const Dim other = kN * 3 + kM - 5, quotients = divided_down(kN, 8) - divided_down(kN, 2);
    for (const Dim& divisor :
         {kN - 1, (kN - 1) * kM, kN * kN - 1, quotients * (divided_down(kM, 3) - kN), Dim::symbolic("k")}) {
        const Dim product = divisor * other;
        EXPECT_TRUE(is_same(exact_quotient(product, divisor).value_or(0), other)) << divisor.str();
        EXPECT_TRUE(is_same(exact_quotient(product * 64, divisor * 16).value_or(0), other * 4))
            << divisor.str();
        EXPECT_FALSE(exact_quotient(product + 1, divisor)) << divisor.str();
    }
}

TEST(OnnxExtents, RefuseWhatNoExpressionHoldsAndKeepNamesThatLookLikeIt) {
    const Dim odd = Dim::named("...#");
    EXPECT_TRUE((odd + 1).is_symbolic());
    EXPECT_TRUE(is_same(largest({odd, 3}) * 2 - largest({odd, 3}), largest({odd, 3})));
    Dim product = kN;
    EXPECT_THROW(for (int i = 0; i < 8; ++i) product = product * (Dim::symbolic("n" + std::to_string(i)) + 1),
                 Refused);
}

}  // namespace
}  // namespace headrace::onnx
