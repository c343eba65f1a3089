#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using Axes = std::vector<std::int64_t>;

const TestTensor& counting() {  // [2, 3, 2]: 1 to 12
    static const TestTensor t = tensor(DType::f32, {2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    return t;
}

TEST(Reduce, ReducesEverythingByDefault) {
    const auto out = run("reduce_sum", {counting()});
    EXPECT_EQ(out[0].type.str(), "f32[]");
    EXPECT_THAT(out[0].as<float>(), ElementsAre(78));
    EXPECT_EQ(run("reduce_sum", {counting()}, {{"keep_dimensions", true}})[0].type.str(), "f32[1, 1, 1]");
}

TEST(Reduce, ReducesFirstMiddleLastAndSeveralAxes) {
    const auto sum = [](Axes axes) {
        return values("reduce_sum", {counting()}, {{"axes", std::move(axes)}});
    };
    EXPECT_THAT(sum({0}), ElementsAre(8, 10, 12, 14, 16, 18));
    EXPECT_THAT(sum({1}), ElementsAre(9, 12, 27, 30));
    EXPECT_THAT(sum({-1}), ElementsAre(3, 7, 11, 15, 19, 23));
    EXPECT_THAT(sum({2, 0}), ElementsAre(18, 26, 34));
    EXPECT_THAT(sum({1, 2}), ElementsAre(21, 57));
    const auto kept = run("reduce_sum", {counting()}, {{"axes", Axes{1}}, {"keep_dimensions", true}});
    EXPECT_EQ(kept[0].type.str(), "f32[2, 1, 2]");
}

TEST(Reduce, NoAxesAppliesTheFunctionToEveryElement) {
    const auto x = tensor(DType::f32, {2}, {-3, 4});
    const auto each = [&](std::string_view op) { return values(op, {x}, {{"axes", Axes{}}}); };
    for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_product"})
        EXPECT_THAT(each(op), ElementsAre(-3, 4)) << op;
    EXPECT_THAT(each("reduce_l1"), ElementsAre(3, 4));
    EXPECT_THAT(each("reduce_l2"), ElementsAre(3, 4));
    EXPECT_THAT(each("reduce_sum_square"), ElementsAre(9, 16));
    EXPECT_THAT(each("reduce_log_sum_exp"), ElementsAre(-3, 4));
    EXPECT_EQ(each("reduce_log_sum")[1], std::log(4.0f));
}

TEST(Reduce, ComputesEveryFunction) {
    const auto x = tensor(DType::f32, {2, 3}, {1, 2, 4, 3, 0.5, 2});
    const auto rows = [&](std::string_view op) { return values(op, {x}, {{"axes", Axes{1}}}); };
    EXPECT_THAT(rows("reduce_mean"), ElementsAre(FloatEq(7.0f / 3), FloatEq(5.5f / 3)));
    EXPECT_THAT(rows("reduce_max"), ElementsAre(4, 3));
    EXPECT_THAT(rows("reduce_min"), ElementsAre(1, 0.5f));
    EXPECT_THAT(rows("reduce_product"), ElementsAre(8, 3));
    EXPECT_THAT(rows("reduce_l1"), ElementsAre(7, 5.5f));
    EXPECT_THAT(rows("reduce_l2"), ElementsAre(FloatEq(std::sqrt(21.0f)), FloatEq(std::sqrt(13.25f))));
    EXPECT_THAT(rows("reduce_sum_square"), ElementsAre(21, 13.25f));
    EXPECT_THAT(rows("reduce_log_sum"), ElementsAre(FloatEq(std::log(7.0f)), FloatEq(std::log(5.5f))));
    EXPECT_THAT(
        rows("reduce_log_sum_exp"),
        ElementsAre(FloatEq(static_cast<float>(std::log(std::exp(1.0) + std::exp(2.0) + std::exp(4.0)))),
                    FloatEq(static_cast<float>(std::log(std::exp(3.0) + std::exp(0.5) + std::exp(2.0))))));
}

TEST(Reduce, SumsWideRowsOfKeptElements) {  // more neighbours than one tile
    constexpr int kWidth = 150, kRows = 5;
    std::vector<double> x;
    for (int i = 0; i < 2 * kRows * kWidth; ++i) x.push_back(i % 17);
    const auto out = values("reduce_sum", {tensor(DType::f32, {2, kRows, kWidth}, x)}, {{"axes", Axes{1}}});
    ASSERT_EQ(out.size(), 2u * kWidth);
    for (int b = 0; b < 2; ++b)
        for (int i = 0; i < kWidth; ++i) {
            int expected = 0;
            for (int r = 0; r < kRows; ++r) expected += ((b * kRows + r) * kWidth + i) % 17;
            EXPECT_EQ(out[b * kWidth + i], expected) << b << ' ' << i;
        }
}

TEST(Reduce, AccumulatesInMoreThanHalfAndSinglePrecision) {
    EXPECT_THAT(values("reduce_sum", {tensor(DType::f16, {4097}, std::vector<double>(4097, 1))}),
                ElementsAre(4096));
    EXPECT_THAT(values("reduce_sum", {tensor(DType::f16, {4098}, std::vector<double>(4098, 1))}),
                ElementsAre(4096));
    EXPECT_THAT(values("reduce_sum", {tensor(DType::f16, {4100}, std::vector<double>(4100, 1))}),
                ElementsAre(4100));
    EXPECT_THAT(values("reduce_sum", {tensor(DType::f32, {3}, {1 << 24, 1, 1})}), ElementsAre((1 << 24) + 2));
    EXPECT_THAT(values("reduce_mean", {tensor(DType::f16, {2}, {65504, 65504})}), ElementsAre(65504));
}

TEST(Reduce, IntegersWrapInTheirOwnType) {
    EXPECT_THAT(values<int>("reduce_sum", {tensor(DType::i8, {2}, {127, 1})}), ElementsAre(-128));
    EXPECT_THAT(values<int>("reduce_l1", {tensor(DType::i32, {3}, {-5, 6, -7})}), ElementsAre(18));
    EXPECT_THAT(values<int>("reduce_l1", {tensor(DType::i32, {1}, {INT32_MIN})}), ElementsAre(INT32_MIN));
    EXPECT_THAT(values<int>("reduce_product", {tensor(DType::u8, {3}, {16, 16, 3})}), ElementsAre(0));
    EXPECT_THAT(
        values<std::int64_t>("reduce_sum_square", {tensor<std::int64_t>(DType::i64, {2}, {3000000001, 1})}),
        ElementsAre(9000000006000000002));
    EXPECT_THAT(values<std::int64_t>("reduce_max",
                                     {tensor<std::int64_t>(DType::i64, {2}, {INT64_MIN, INT64_MIN + 1})}),
                ElementsAre(INT64_MIN + 1));
    EXPECT_THAT(values<std::uint64_t>("reduce_min",
                                      {tensor<std::uint64_t>(DType::u64, {2}, {UINT64_MAX, UINT64_MAX - 1})}),
                ElementsAre(UINT64_MAX - 1));
}

TEST(Reduce, MaxAndMinKeepNan) {
    for (const char* op : {"reduce_max", "reduce_min"})
        for (const auto& x : {std::vector<double>{kNan, 1, 2}, {1, kNan, 2}, {1, 2, kNan}})
            EXPECT_TRUE(std::isnan(values(op, {tensor(DType::f32, {3}, x)})[0])) << op;
}

TEST(Reduce, LogSumExpNeitherOverflowsNorLosesInfinities) {
    const auto lse = [](const std::vector<double>& x) {
        return values("reduce_log_sum_exp",
                      {tensor(DType::f32, {static_cast<std::int64_t>(x.size())}, x)})[0];
    };
    EXPECT_FLOAT_EQ(lse({1000, 1000}), 1000 + std::log(2.0f));
    EXPECT_FLOAT_EQ(lse({-1000, -1000, -1000}), -1000 + std::log(3.0f));
    EXPECT_EQ(lse({-kInf, -kInf}), -kInf);
    EXPECT_EQ(lse({-kInf, 3}), 3);
    EXPECT_EQ(lse({kInf, 1, kInf}), kInf);
    EXPECT_TRUE(std::isnan(lse({1, kNan, 2})));
}

TEST(Reduce, EmptyAxesOfExtentZeroGiveTheNeutralElement) {
    const auto empty = [](std::string_view op) {
        return values(op, {tensor(DType::f32, {2, 0}, {})}, {{"axes", Axes{1}}});
    };
    EXPECT_THAT(empty("reduce_sum"), ElementsAre(0, 0));
    EXPECT_THAT(empty("reduce_product"), ElementsAre(1, 1));
    EXPECT_THAT(empty("reduce_max"), ElementsAre(-kInf, -kInf));
    EXPECT_THAT(empty("reduce_min"), ElementsAre(kInf, kInf));
    EXPECT_THAT(empty("reduce_log_sum_exp"), ElementsAre(-kInf, -kInf));
    EXPECT_TRUE(std::isnan(empty("reduce_mean")[0]));
    EXPECT_THAT(values<int>("reduce_max", {tensor(DType::i32, {0}, {})}), ElementsAre(INT32_MIN));
    EXPECT_TRUE(values("reduce_sum", {tensor(DType::f32, {2, 0}, {})}, {{"axes", Axes{0}}}).empty());
}

TEST(Reduce, RejectsBadAxesAndTypes) {
    const TensorType x{DType::f32, {2, 3}};
    EXPECT_THAT(infer_error("reduce_sum", {x}, {{"axes", Axes{2}}}),
                HasSubstr("Axis 2 out of bounds for rank 2"));
    EXPECT_THAT(infer_error("reduce_max", {x}, {{"axes", Axes{-3}}}),
                HasSubstr("Axis -3 out of bounds for rank 2"));
    EXPECT_THAT(infer_error("reduce_l2", {x}, {{"axes", Axes{1, -1}}}), HasSubstr("Duplicate axis -1"));
    EXPECT_THAT(infer_error("reduce_mean", {TensorType{DType::i32, {2}}}), HasSubstr("i32"));
    EXPECT_THAT(infer_error("reduce_sum", {x}, {{"axis", Axes{1}}}), HasSubstr("axes, keep_dimensions"));
}

TEST(Reduce, KeepsSymbolicExtents) {
    const auto out =
        infer("reduce_mean", {TensorType{DType::f32, {1, Dim::symbolic("seq"), 384}}}, {{"axes", Axes{2}}});
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out.value()[0].str(), "f32[1, seq]");
}

TEST(Reduce, NamesTheInputWhenNothingIsReduced) {
    const auto same = [](std::string_view op, Shape shape, const NamedAttrs& named) {
        const OpDef& def = *find_op(op);
        const TensorType x{DType::f32, std::move(shape)};
        const TensorType* types[] = {&x};
        return def.same_as(Operands(types), def.make_attrs(named).value().get());
    };
    EXPECT_EQ(same("reduce_sum", {2, 1}, {{"axes", Axes{1}}, {"keep_dimensions", true}}), 0);
    EXPECT_EQ(same("reduce_max", {2, 3}, {{"axes", Axes{}}}), 0);
    EXPECT_EQ(same("reduce_sum", {2, 1}, {{"axes", Axes{1}}}), std::nullopt);
    EXPECT_EQ(same("reduce_sum", {2, 3}, {{"axes", Axes{1}}, {"keep_dimensions", true}}), std::nullopt);
    EXPECT_EQ(find_op("reduce_l1")->same_as, nullptr);
}

TEST(Reduce, LowersSumsOfAnyAxesWhoseTypeGgmlAdds) {
    const auto lowerable = [](std::string_view op, DType t, Axes axes) {
        const OpDef& def = *find_op(op);
        const TensorType x{t, {2, 3, 1, 4}};
        const TensorType* types[] = {&x};
        return def.lowerable(Operands(types), def.make_attrs({{"axes", std::move(axes)}}).value().get()).ok();
    };
    EXPECT_TRUE(lowerable("reduce_mean", DType::f32, {3}));
    EXPECT_TRUE(lowerable("reduce_sum", DType::f32, {1, 3}));  // the extent of 1 between them does not matter
    EXPECT_TRUE(lowerable("reduce_sum", DType::f32, {0}));
    EXPECT_TRUE(lowerable("reduce_sum", DType::f32, {0, 3}));
    EXPECT_TRUE(lowerable("reduce_sum", DType::f16, {3}));
    EXPECT_TRUE(lowerable("reduce_max", DType::f32, {1}));
    EXPECT_FALSE(lowerable("reduce_sum", DType::i32, {3}));
    EXPECT_FALSE(lowerable("reduce_sum", DType::f64, {3}));
}

}  // namespace
}  // namespace headrace::testing
