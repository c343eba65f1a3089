#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

template <class T>
std::vector<T> apply(std::string_view op, DType t, const std::vector<T>& a, const std::vector<T>& b) {
    const auto n = static_cast<std::int64_t>(a.size());
    return values<T>(op, {tensor<T>(t, {n}, a), tensor<T>(t, {n}, b)});
}

TEST(Binary, AddsSubtractsMultipliesAndDividesFloats) {
    const std::vector<float> a{1.5f, -2, 7}, b{0.5f, 4, -2};
    EXPECT_THAT(apply<float>("add", DType::f32, a, b), ElementsAre(2, 2, 5));
    EXPECT_THAT(apply<float>("sub", DType::f32, a, b), ElementsAre(1, -6, 9));
    EXPECT_THAT(apply<float>("mul", DType::f32, a, b), ElementsAre(0.75f, -8, -14));
    EXPECT_THAT(apply<float>("div", DType::f32, a, b), ElementsAre(3, -0.5f, -3.5f));
}

TEST(Binary, RoundsHalfPrecisionResultsOnce) {
    EXPECT_THAT(apply<float>("add", DType::f16, {2048, 2048}, {1, 3}), ElementsAre(2048, 2052));
    EXPECT_THAT(apply<float>("mul", DType::f16, {300}, {300}), ElementsAre(kInf));
    EXPECT_THAT(apply<float>("add", DType::bf16, {256, 256}, {1, 3}), ElementsAre(256, 260));
}

TEST(Binary, BroadcastsEitherOperandAndBoth) {
    EXPECT_THAT(
        values("sub", {tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}), tensor(DType::f32, {3}, {1, 1, 2})}),
        ElementsAre(0, 1, 1, 3, 4, 4));
    EXPECT_THAT(
        values("sub", {tensor(DType::f32, {3}, {1, 1, 2}), tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})}),
        ElementsAre(0, -1, -1, -3, -4, -4));
    EXPECT_THAT(values("sub", {tensor(DType::f32, {}, {10}), tensor(DType::f32, {2, 1}, {1, 2})}),
                ElementsAre(9, 8));
    const auto outer =
        run("mul", {tensor(DType::f32, {2, 1, 2}, {1, 2, 3, 4}), tensor(DType::f32, {2, 1}, {10, 100})});
    EXPECT_EQ(outer[0].type.str(), "f32[2, 2, 2]");
    EXPECT_THAT(outer[0].as<float>(), ElementsAre(10, 20, 100, 200, 30, 40, 300, 400));
}

TEST(Binary, BroadcastsDimensionsThatCannotBeMerged) {
    // a[i0, 0, i2, 0, i4] + b[0, i1, 0, i3, i4]
    std::vector<double> a, b;
    for (int i = 0; i < 2 * 2 * 3; ++i) a.push_back(i);
    for (int i = 0; i < 2 * 2 * 3; ++i) b.push_back(100 * i);
    const auto out =
        values("add", {tensor(DType::f32, {2, 1, 2, 1, 3}, a), tensor(DType::f32, {2, 1, 2, 3}, b)});
    ASSERT_EQ(out.size(), 48u);
    for (int i0 = 0, at = 0; i0 < 2; ++i0)
        for (int i1 = 0; i1 < 2; ++i1)
            for (int i2 = 0; i2 < 2; ++i2)
                for (int i3 = 0; i3 < 2; ++i3)
                    for (int i4 = 0; i4 < 3; ++i4, ++at)
                        EXPECT_EQ(out[at], (i0 * 2 + i2) * 3 + i4 + 100 * ((i1 * 2 + i3) * 3 + i4)) << at;
}

TEST(Binary, AcceptsEmptyTensors) {
    const auto out = run("add", {tensor(DType::f32, {0, 3}, {}), tensor(DType::f32, {3}, {1, 2, 3})});
    EXPECT_EQ(out[0].type.str(), "f32[0, 3]");
}

TEST(Binary, WrapsIntegers) {
    EXPECT_THAT(apply<int>("add", DType::i8, {127, -128}, {1, -1}), ElementsAre(-128, 127));
    EXPECT_THAT(apply<int>("sub", DType::u8, {0, 3}, {1, 2}), ElementsAre(255, 1));
    EXPECT_THAT(apply<int>("mul", DType::i16, {-32768, 300}, {-32768, 300}), ElementsAre(0, 24464));
    EXPECT_THAT(apply<std::int64_t>("mul", DType::i64, {INT64_MAX}, {2}), ElementsAre(-2));
    EXPECT_THAT(apply<std::int64_t>("add", DType::i64, {9007199254740993}, {2}),
                ElementsAre(9007199254740995));
    EXPECT_THAT(apply<std::uint64_t>("add", DType::u64, {UINT64_MAX}, {2}), ElementsAre(1u));
}

TEST(Binary, IntegerDivisionTruncatesAndNeverTraps) {
    EXPECT_THAT(apply<int>("div", DType::i32, {7, -7, 7, INT32_MIN, 5, 0}, {2, 2, -2, -1, 0, 0}),
                ElementsAre(3, -3, -3, INT32_MIN, 0, 0));
    EXPECT_THAT(apply<std::int64_t>("div", DType::i64, {INT64_MIN}, {-1}), ElementsAre(INT64_MIN));
    EXPECT_THAT(apply<std::uint64_t>("div", DType::u64, {UINT64_MAX}, {UINT64_MAX}), ElementsAre(1u));
    EXPECT_THAT(apply<int>("div", DType::u8, {255, 9}, {255, 0}), ElementsAre(1, 0));
}

TEST(Binary, FloatDivisionByZeroFollowsIeee) {
    const auto out = apply<float>("div", DType::f32, {1, -1, 0}, {0, 0, 0});
    EXPECT_EQ(out[0], kInf);
    EXPECT_EQ(out[1], -kInf);
    EXPECT_TRUE(std::isnan(out[2]));
}

TEST(Binary, MaxAndMinKeepNanOfEitherOperand) {
    for (const char* op : {"max", "min"}) {
        const auto out =
            values(op, {tensor(DType::f32, {3}, {kNan, 1, kNan}), tensor(DType::f32, {3}, {1, kNan, kNan})});
        for (float v : out) EXPECT_TRUE(std::isnan(v)) << op;
    }
    EXPECT_THAT(apply<float>("max", DType::f16, {1, -2, -INFINITY}, {2, -3, 0}), ElementsAre(2, -2, 0));
    EXPECT_THAT(apply<float>("min", DType::f16, {1, -2, -INFINITY}, {2, -3, 0}), ElementsAre(1, -3, -kInf));
    EXPECT_THAT(apply<std::uint64_t>("max", DType::u64, {UINT64_MAX}, {1}), ElementsAre(UINT64_MAX));
    EXPECT_THAT(apply<std::int64_t>("min", DType::i64, {9007199254740993}, {9007199254740992}),
                ElementsAre(9007199254740992));
}

TEST(Binary, PowOfFloatsFollowsTheCLibrary) {
    EXPECT_THAT(apply<float>("pow", DType::f32, {2, -2, 4, 5, 0}, {10, 3, 0.5f, 0, 0}),
                ElementsAre(1024, -8, 2, 1, 1));
    EXPECT_TRUE(std::isnan(apply<float>("pow", DType::f32, {-2}, {0.5f})[0]));
    EXPECT_EQ(apply<float>("pow", DType::f32, {0}, {-1})[0], kInf);
}

TEST(Binary, SquaresAndCubesOfAllElementsAreThoseOfEachOne) {
    const std::vector<double> x{-3, -0.0, 0.5, 1.5, kInf, -kInf, kNan, 1e30, 1e-30, 7};
    for (const DType t : {DType::f32, DType::f16, DType::f64, DType::i32, DType::u8}) {
        const bool is_float = t == DType::f32 || t == DType::f16 || t == DType::f64;
        const std::vector<double> values_of = is_float ? x : std::vector<double>{0, 1, 7, 100, 255};
        const auto count = static_cast<std::int64_t>(values_of.size());
        for (const double exponent : {2.0, 3.0}) {
            const auto base = tensor(t, {count}, values_of);
            const auto all = values("pow", {base, tensor(t, {}, {exponent})}),
                       each = values("pow", {base, tensor(t, {count},
                                                          std::vector<double>(values_of.size(), exponent))});
            for (std::size_t i = 0; i < all.size(); ++i) {
                SCOPED_TRACE(::testing::Message() << name_of(t) << ' ' << values_of[i] << '^' << exponent);
                if (std::isnan(each[i]))
                    EXPECT_TRUE(std::isnan(all[i]));
                else
                    EXPECT_FLOAT_EQ(all[i], each[i]);
            }
        }
    }
}

TEST(Binary, PowOfIntegersWrapsAndTruncates) {
    EXPECT_THAT(apply<int>("pow", DType::i32, {3, -2, 2, 7, 0}, {4, 3, 31, 0, 0}),
                ElementsAre(81, -8, INT32_MIN, 1, 1));
    EXPECT_THAT(apply<int>("pow", DType::i8, {1, -1, -1, 2, 0}, {-5, -5, -4, -1, -1}),
                ElementsAre(1, -1, 1, 0, 0));
    EXPECT_THAT(apply<std::uint64_t>("pow", DType::u64, {10, 2}, {19, 64}),
                ElementsAre(10000000000000000000u, 0u));
}

TEST(Binary, InfersSymbolicExtents) {
    const Dim n = Dim::symbolic("n");
    const auto out = infer("add", {TensorType{DType::f32, {n, 1, 4}}, TensorType{DType::f32, {3, 1}}});
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out.value()[0].str(), "f32[n, 3, 4]");
    const TensorType open{DType::f32, {n}}, two{DType::f32, {2}}, other{DType::f32, {Dim::symbolic("m")}};
    EXPECT_EQ(infer("add", {open, two}).value()[0].str(), "f32[2]");
    EXPECT_THAT(conditions("add", {open, two}), ElementsAre("n = 2 or either is 1"));
    EXPECT_EQ(infer("add", {open, other}).value()[0].str(), "f32[Max(m, n)]");
    EXPECT_THAT(conditions("add", {open, other}), ElementsAre("n = m or either is 1"));
    const TensorType large{DType::f32, {Dim::symbolic("k", 3, 9)}};
    EXPECT_EQ(infer("add", {open, large}).value()[0].str(), "f32[k]");
    EXPECT_THAT(infer_error("add", {large, two}), HasSubstr("Incompatible shapes [k] and [2]"));
}

TEST(Binary, InfersOneExtentOfAllSumsOfTheSameOpenOnes) {
    const Dim n = Dim::symbolic("n", 0), m = Dim::symbolic("m", 0), k = Dim::symbolic("k", 0);
    const auto sum = [](const Dim& a, const Dim& b) {
        return infer("add", {TensorType{DType::f32, {a}}, TensorType{DType::f32, {b}}}).value()[0].shape[0];
    };
    const Dim both = sum(n, m), all = sum(both, k);
    EXPECT_EQ(both.str(), "Max(m, n)*Min(1, m, n)");
    for (const Dim& part : {n, m, both}) {
        EXPECT_EQ(sum(both, part).str(), both.str());
        EXPECT_EQ(sum(part, both).str(), both.str());
        EXPECT_EQ(sum(all, part).str(), all.str());
    }
    EXPECT_EQ(sum(all, k).str(), all.str());
    EXPECT_NE(all.str(), both.str());
    // An extent that only looks alike says nothing of one that may be 0.
    const Dim larger = Dim::of(Expression::largest({Expression(n), 1}));
    EXPECT_EQ(sum(larger, n).str(), "Max(1, n)*Min(1, n)");
}

TEST(Binary, RejectsShapesThatDoNotBroadcast) {
    for (const char* op : {"add", "sub", "mul", "div", "max", "min", "pow"})
        EXPECT_THAT(infer_error(op, {TensorType{DType::f32, {2, 3}}, TensorType{DType::f32, {2, 2}}}),
                    HasSubstr("Incompatible shapes [2, 3] and [2, 2]: extents 3 and 2"));
    // ggml would tile 2 into 4.
    EXPECT_THAT(infer_error("add", {TensorType{DType::f32, {4}}, TensorType{DType::f32, {2}}}),
                HasSubstr("4 and 2"));
}

TEST(Binary, RejectsMixedAndUncountableTypes) {
    EXPECT_THAT(infer_error("add", {TensorType{DType::f32, {2}}, TensorType{DType::f16, {2}}}),
                HasSubstr("f16"));
    EXPECT_THAT(infer_error("mul", {TensorType{DType::boolean, {2}}, TensorType{DType::boolean, {2}}}),
                HasSubstr("bool"));
}

TEST(Binary, LowersHalfFloatsAndFloatsHoweverTheyBroadcast) {
    const auto lowerable = [](std::string_view op, DType t, Shape a, Shape b) {
        const TensorType left{t, std::move(a)}, right{t, std::move(b)};
        const TensorType* types[] = {&left, &right};
        const OpDef& def = *find_op(op);
        return def.lower && def.lowerable(Operands(types), nullptr).ok();
    };
    EXPECT_TRUE(lowerable("add", DType::f32, {2, 3, 4, 5, 6}, {4, 5, 6}));
    EXPECT_TRUE(lowerable("div", DType::f16, {}, {2, 3}));
    EXPECT_TRUE(lowerable("add", DType::f32, {2, 1, 2, 1, 3}, {1, 4, 1, 2, 3}));
    EXPECT_TRUE(lowerable("max", DType::f32, {2, 1, 2, 1, 3}, {1, 4, 1, 2, 3}));
    EXPECT_FALSE(lowerable("fmod", DType::f32, {2}, {2}));
    EXPECT_FALSE(lowerable("add", DType::i32, {2}, {2}));
    EXPECT_FALSE(lowerable("add", DType::f64, {2}, {2}));
}

}  // namespace
}  // namespace headrace::testing
