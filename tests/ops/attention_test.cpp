#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr const char* kOp = "scaled_dot_product_attention";

TEST(Attention, MixesValuesByTheSoftmaxOfScaledProducts) {
    // Scores 0 and ln 3 weigh the values 1/4 and 3/4.
    const auto q = tensor(DType::f64, {1, 1}, {1}), k = tensor(DType::f64, {2, 1}, {0, std::log(3.0)}),
               v = tensor(DType::f64, {2, 2}, {4, 8, 0, 4});
    EXPECT_THAT(values<double>(kOp, {q, k, v}), Pointwise(DoubleNear(1e-12), {1.0, 5.0}));
    EXPECT_THAT(values<double>(kOp, {q, k, v}, {{"scale", 0.0}}), ElementsAre(2, 6));
}

TEST(Attention, ScalesByTheRootOfTheWidthUnlessTold) {
    const auto q = tensor(DType::f64, {1, 4}, {1, 1, 1, 1}), v = tensor(DType::f64, {2, 1}, {0, 4});
    const double s = std::log(3.0) / 2;  // times 4 over the root of 4
    const auto k = tensor(DType::f64, {2, 4}, {0, 0, 0, 0, s, s, s, s});
    EXPECT_THAT(values<double>(kOp, {q, k, v}), Pointwise(DoubleNear(1e-12), {3.0}));
}

TEST(Attention, LetsSeveralQueryHeadsReadOneHeadOfKeys) {
    const auto q = tensor(DType::f32, {4, 1, 1}, {0, 0, 0, 0}), k = tensor(DType::f32, {2, 1, 1}, {1, 1}),
               v = tensor(DType::f32, {2, 1, 1}, {10, 20});
    EXPECT_THAT(values(kOp, {q, k, v}), ElementsAre(10, 10, 20, 20));
}

TEST(Attention, HidesLaterKeysWhenCausal) {
    const auto q = tensor(DType::f32, {3, 1}, {0, 0, 0}), v = tensor(DType::f32, {3, 1}, {6, 0, 9});
    EXPECT_THAT(values(kOp, {q, q, v}, {{"causal", true}}), ElementsAre(6, 3, 5));
}

TEST(Attention, GivesZeroOrNanWhereEveryKeyIsMasked) {
    const auto q = tensor(DType::f32, {2, 1}, {1, 1}), v = tensor(DType::f32, {2, 1}, {6, 2}),
               mask = tensor(DType::f32, {2, 2}, {-kInf, 0, -kInf, -kInf});
    EXPECT_THAT(values(kOp, {q, q, v, mask}), ElementsAre(2, 0));
    EXPECT_THAT(values(kOp, {q, q, v, mask}, {{"zero_if_masked", false}}),
                ElementsAre(2, ::testing::IsNan()));
}

TEST(Attention, LeavesOpenHeadsToARun) {
    const auto heads = [](Dim n) { return TensorType{DType::f32, {1, std::move(n), 2, 8}}; };
    const auto q = heads(Dim::symbolic("q")), k = heads(Dim::symbolic("k")), four = heads(4);
    EXPECT_THAT(conditions(kOp, {q, k, k}), ElementsAre("q = (q//k)*k"));
    EXPECT_THAT(conditions(kOp, {four, k, k}), ElementsAre("4 = (4//k)*k"));
    EXPECT_THAT(conditions(kOp, {q, four, heads(Dim::symbolic("v"))}), ElementsAre("4 = v", "q = 4*(q//4)"));
    EXPECT_THAT(conditions(kOp, {heads(Dim::of(Expression::symbol("k") * 3)), k, k}), ElementsAre());
    EXPECT_THAT(infer_error(kOp, {q, heads(0), heads(0)}),
                HasSubstr("q heads are no multiple of the key's 0"));
}

TEST(Attention, RefusesOperandsThatDoNotFitTogether) {
    const auto zeros = [](Shape shape) {
        std::int64_t n = 1;
        for (const Dim& d : shape) n *= d.size();
        return tensor(DType::f32, shape, std::vector<double>(static_cast<std::size_t>(n)));
    };
    const auto q = zeros({1, 4, 2, 8});
    EXPECT_THAT(error(kOp, {q, zeros({4, 2, 8}), q}), HasSubstr("must have the same rank"));
    EXPECT_THAT(error(kOp, {q, zeros({2, 4, 2, 8}), zeros({2, 4, 2, 8})}), HasSubstr("same batch extents"));
    EXPECT_THAT(error(kOp, {q, zeros({1, 3, 2, 8}), zeros({1, 3, 2, 8})}),
                HasSubstr("4 heads are no multiple"));
    EXPECT_THAT(error(kOp, {q, zeros({1, 4, 2, 7}), q}), HasSubstr("last extents of query and key differ"));
    EXPECT_THAT(error(kOp, {q, q, zeros({1, 4, 3, 8})}), HasSubstr("as many values as keys"));
    EXPECT_THAT(error(kOp, {q, q, q, zeros({3, 2})}), HasSubstr("mask has shape [3, 2]"));
}

}  // namespace
}  // namespace headrace::testing
