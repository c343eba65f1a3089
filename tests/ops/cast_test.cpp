#include <gmock/gmock.h>

#include <cmath>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Out, class In = double>
std::vector<Out> cast(DType from, DType to, const std::vector<In>& x) {
    return values<Out>("cast", {tensor<In>(from, {static_cast<std::int64_t>(x.size())}, x)},
                       {{"data_type", to}});
}

TEST(Cast, TruncatesFloatsTowardsZero) {
    for (DType from : {DType::f32, DType::f16, DType::bf16, DType::f64})
        for (DType to : {DType::i8, DType::i16, DType::i32, DType::i64})
            EXPECT_THAT(cast<int>(from, to, {2.5, -2.5, 0.75, -0.75, 100}), ElementsAre(2, -2, 0, 0, 100));
}

// What x86's conversions give: the low bits of a whole number of 32 bits, or 64, whose lowest value stands
// for all that it cannot hold.
TEST(Cast, KeepsTheLowBitsOfFloatsBeyondASmallInteger) {
    for (DType from : {DType::f32, DType::f16, DType::f64}) {
        EXPECT_THAT(cast<int>(from, DType::i8, {300, -300, 128, -129, 255.5}),
                    ElementsAre(44, -44, -128, 127, -1));
        EXPECT_THAT(cast<int>(from, DType::u8, {300, -1, 255.5, -0.5}), ElementsAre(44, 255, 255, 0));
        EXPECT_THAT(cast<int>(from, DType::i16, {32768, -40000}), ElementsAre(-32768, 25536));
        EXPECT_THAT(cast<int>(from, DType::i4, {9, -9, 16, 3.75, -8.5}), ElementsAre(-7, 7, 0, 3, -8));
        EXPECT_THAT(cast<int>(from, DType::u4, {99, -9, 3.75}), ElementsAre(3, 7, 3));
    }
    for (DType to : {DType::i4, DType::u4, DType::i8, DType::u8, DType::i16})
        for (DType from : {DType::f32, DType::bf16, DType::f64})
            EXPECT_THAT(cast<int>(from, to, {3e9, -1e30, kInf, -kInf, kNan}), ElementsAre(0, 0, 0, 0, 0));
}

TEST(Cast, TakesTheLowestIntegerWhereAFloatHasNone) {
    for (DType from : {DType::f32, DType::f64}) {
        EXPECT_THAT(cast<std::int64_t>(from, DType::i32, {2147483520, 2147483648, -2147483648, -3e9}),
                    ElementsAre(2147483520, INT32_MIN, INT32_MIN, INT32_MIN));
        EXPECT_THAT(cast<std::int64_t>(from, DType::i32, {kInf, -kInf, kNan}),
                    ElementsAre(INT32_MIN, INT32_MIN, INT32_MIN));
        EXPECT_THAT(cast<std::int64_t>(from, DType::i64,
                                       {9223371487098961920, 9223372036854775808.0, -1e19, kInf, kNan}),
                    ElementsAre(9223371487098961920, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN));
    }
    EXPECT_THAT(cast<std::int64_t>(DType::f64, DType::i32, {2147483647.5, -2147483648.5}),
                ElementsAre(INT32_MAX, INT32_MIN));
}

TEST(Cast, WrapsNegativeFloatsInUnsignedIntegers) {
    constexpr std::uint64_t kTop = std::uint64_t{1} << 63;
    for (DType from : {DType::f32, DType::f64}) {
        EXPECT_THAT(cast<std::uint32_t>(from, DType::u32, {-1, -40000, 3e9, 4294967296, kInf, -kInf, kNan}),
                    ElementsAre(4294967295u, 4294927296u, 3000000000u, 0u, 0u, 0u, 0u));
        EXPECT_THAT(
            cast<std::uint64_t>(from, DType::u64, {-2, 9223373136366403584.0, 18446744073709551616.0, kInf}),
            ElementsAre(UINT64_MAX - 1, 9223373136366403584u, 0u, 0u));
        EXPECT_THAT(cast<std::uint64_t>(from, DType::u64, {-1e19, -kInf, kNan}),
                    ElementsAre(kTop, kTop, kTop));
    }
}

TEST(Cast, WrapsIntegersIntoNarrowerOnes) {
    EXPECT_THAT(cast<int>(DType::i32, DType::u8, {257, -1}), ElementsAre(1, 255));
    EXPECT_THAT(cast<int>(DType::u8, DType::i8, {200}), ElementsAre(-56));
    EXPECT_THAT((cast<std::int64_t, std::int64_t>(DType::i64, DType::i32, {4294967297, -2})),
                ElementsAre(1, -2));
    EXPECT_THAT((cast<std::uint64_t, std::int64_t>(DType::i64, DType::u64, {-1})), ElementsAre(UINT64_MAX));
    EXPECT_THAT(cast<int>(DType::i8, DType::i4, {9, -9}), ElementsAre(-7, 7));
    EXPECT_THAT(cast<int>(DType::i8, DType::u4, {17, -1}), ElementsAre(1, 15));
}

TEST(Cast, KeepsSixtyFourBitsExactly) {
    EXPECT_THAT((cast<std::uint64_t, std::int64_t>(DType::i64, DType::u64, {9007199254740993})),
                ElementsAre(9007199254740993u));
    EXPECT_THAT((cast<std::int64_t, std::int64_t>(DType::i32, DType::i64, {INT32_MIN})),
                ElementsAre(INT32_MIN));
}

TEST(Cast, RoundsToHalfPrecisionOnce) {
    EXPECT_THAT(cast<float>(DType::f32, DType::f16, {0.1, 70000, 2049, 1e-8}),
                ElementsAre(0.0999755859375f, kInf, 2048, 0));
    // Between two halves, and just above the middle: rounding to f32 first would lose the excess.
    EXPECT_THAT(cast<float>(DType::f64, DType::f16, {2049 + 1e-9, 2051 - 1e-9, -2049 - 1e-9}),
                ElementsAre(2050, 2050, -2050));
    EXPECT_THAT(cast<float>(DType::f64, DType::bf16, {257 + 1e-12}), ElementsAre(258));
    EXPECT_TRUE(std::isnan(cast<float>(DType::f64, DType::f16, {kNan})[0]));
    EXPECT_THAT(cast<float>(DType::i32, DType::bf16, {(1 << 25) + (1 << 17) + 1}),
                ElementsAre((1 << 25) + (1 << 18)));
}

TEST(Cast, UnpacksAndPacksNibblesLowFirst) {
    EXPECT_THAT(cast<int>(DType::i4, DType::i32, {-8, 7, -1}), ElementsAre(-8, 7, -1));
    EXPECT_THAT(cast<float>(DType::u4, DType::f32, {15, 0, 9}), ElementsAre(15, 0, 9));
    EXPECT_THAT(cast<int>(DType::i4, DType::u4, {-1, 3}), ElementsAre(15, 3));
    const auto packed = run("cast", {tensor(DType::i32, {3}, {1, 2, 3})}, {{"data_type", DType::u4}})[0];
    EXPECT_THAT(packed.bytes, ElementsAre(std::byte{0x21}, std::byte{0x03}));
}

TEST(Cast, BoolIsWhetherAValueDiffersFromZero) {
    EXPECT_THAT(cast<int>(DType::f32, DType::boolean, {0, -0.0, 0.25, -3, kNan}), ElementsAre(0, 0, 1, 1, 1));
    EXPECT_THAT(cast<int>(DType::i32, DType::boolean, {256, 0}), ElementsAre(1, 0));
    EXPECT_THAT(cast<float>(DType::boolean, DType::f32, {1, 0}), ElementsAre(1, 0));
}

TEST(Cast, KeepsTheShapeAndAcceptsEmptyTensors) {
    const auto out =
        infer("cast", {TensorType{DType::i32, {Dim::symbolic("n"), 2}}}, {{"data_type", std::string("f16")}});
    ASSERT_TRUE(out.ok());
    EXPECT_EQ(out.value()[0].str(), "f16[n, 2]");
    EXPECT_TRUE(cast<float>(DType::i4, DType::f32, {}).empty());
}

TEST(Cast, NeedsADataType) {
    EXPECT_THAT(infer_error("cast", {TensorType{DType::f32, {2}}}), HasSubstr("data_type is missing"));
}

TEST(Cast, LowersOnlyConversionsThatGgmlDoesAlike) {
    const OpDef& def = *find_op("cast");
    const auto lowerable = [&](DType from, DType to) {
        const TensorType x{from, {2}};
        const TensorType* types[] = {&x};
        return def.lowerable(Operands(types), def.make_attrs({{"data_type", to}}).value().get()).ok();
    };
    EXPECT_TRUE(lowerable(DType::f32, DType::f16));
    EXPECT_TRUE(lowerable(DType::i32, DType::f32));
    EXPECT_TRUE(lowerable(DType::boolean, DType::u8));
    EXPECT_FALSE(lowerable(DType::u8, DType::boolean));
    EXPECT_FALSE(lowerable(DType::f32, DType::i32));
    EXPECT_FALSE(lowerable(DType::i64, DType::f32));
}

}  // namespace
}  // namespace headrace::testing
