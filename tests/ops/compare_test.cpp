#include <gmock/gmock.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Compare, TellsLesserEqualAndGreaterApart) {
    for (DType t :
         {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::i16, DType::i32, DType::i64}) {
        const OptionalTensors in{tensor(t, {3}, {-1, 2, 3}), tensor(t, {3}, {1, 2, -3})};
        EXPECT_THAT(values<int>("equal", in), ElementsAre(0, 1, 0)) << name_of(t);
        EXPECT_THAT(values<int>("not_equal", in), ElementsAre(1, 0, 1)) << name_of(t);
        EXPECT_THAT(values<int>("greater", in), ElementsAre(0, 0, 1)) << name_of(t);
        EXPECT_THAT(values<int>("greater_or_equal", in), ElementsAre(0, 1, 1)) << name_of(t);
        EXPECT_THAT(values<int>("lesser", in), ElementsAre(1, 0, 0)) << name_of(t);
        EXPECT_THAT(values<int>("lesser_or_equal", in), ElementsAre(1, 1, 0)) << name_of(t);
    }
}

TEST(Compare, OrdersUnsignedAndSixtyFourBitValuesExactly) {
    using U = std::uint64_t;
    using I = std::int64_t;
    EXPECT_THAT(values<int>("greater", {tensor<U>(DType::u64, {2}, {UINT64_MAX, 1}),
                                        tensor<U>(DType::u64, {2}, {1, UINT64_MAX})}),
                ElementsAre(1, 0));
    EXPECT_THAT(values<int>("equal", {tensor<I>(DType::i64, {1}, {9007199254740993}),
                                      tensor<I>(DType::i64, {1}, {9007199254740992})}),
                ElementsAre(0));
    EXPECT_THAT(values<int>("greater", {tensor(DType::u8, {1}, {200}), tensor(DType::u8, {1}, {100})}),
                ElementsAre(1));
}

TEST(Compare, NanIsUnequalToEverythingAndNeverOrdered) {
    const OptionalTensors in{tensor(DType::f32, {3}, {kNan, kNan, 1}),
                             tensor(DType::f32, {3}, {kNan, 1, kNan})};
    EXPECT_THAT(values<int>("not_equal", in), ElementsAre(1, 1, 1));
    for (const char* op : {"equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal"})
        EXPECT_THAT(values<int>(op, in), ElementsAre(0, 0, 0)) << op;
}

TEST(Compare, ZerosOfBothSignsAreEqual) {
    EXPECT_THAT(values<int>("equal", {tensor(DType::f16, {1}, {0.0}), tensor(DType::f16, {1}, {-0.0})}),
                ElementsAre(1));
}

TEST(Compare, BroadcastsAndYieldsU8) {
    const auto out = run("lesser", {tensor(DType::f32, {2, 1}, {1, 3}), tensor(DType::f32, {3}, {0, 2, 4})});
    EXPECT_EQ(out[0].type.str(), "u8[2, 3]");
    EXPECT_THAT(out[0].as<int>(), ElementsAre(0, 1, 1, 0, 0, 1));
}

TEST(Compare, LogicTakesEveryNonZeroValueAsTrue) {
    const OptionalTensors in{tensor(DType::u8, {4}, {0, 0, 2, 255}), tensor(DType::u8, {4}, {0, 7, 0, 1})};
    EXPECT_THAT(values<int>("logical_and", in), ElementsAre(0, 0, 0, 1));
    EXPECT_THAT(values<int>("logical_or", in), ElementsAre(0, 1, 1, 1));
    EXPECT_THAT(values<int>("logical_xor", in), ElementsAre(0, 1, 1, 0));
    EXPECT_THAT(values<int>("logical_not", {in[1]}), ElementsAre(1, 0, 1, 0));
}

TEST(Compare, LogicKeepsBool) {
    const TensorType b{DType::boolean, {2}};
    EXPECT_EQ(infer("logical_and", {b, b}).value()[0].str(), "bool[2]");
    EXPECT_EQ(infer("logical_not", {b}).value()[0].str(), "bool[2]");
    EXPECT_EQ(infer("equal", {b, b}).value()[0].str(), "u8[2]");
}

TEST(Compare, FindsNanAndInfinities) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
        const auto x = tensor(t, {5}, {kNan, kInf, -kInf, 0, 60000});
        EXPECT_THAT(values<int>("is_nan", {x}), ElementsAre(1, 0, 0, 0, 0)) << name_of(t);
        EXPECT_THAT(values<int>("is_infinite", {x}), ElementsAre(0, 1, 1, 0, 0)) << name_of(t);
    }
    EXPECT_EQ(infer("is_nan", {TensorType{DType::f16, {2, 3}}}).value()[0].str(), "u8[2, 3]");
}

TEST(Compare, RejectsWrongTypesAndShapes) {
    const TensorType x{DType::f32, {2}}, h{DType::f16, {2}}, three{DType::f32, {3}};
    EXPECT_THAT(infer_error("equal", {x, h}), HasSubstr("f16"));
    EXPECT_THAT(infer_error("greater", {x, three}), HasSubstr("Incompatible shapes [2] and [3]"));
    EXPECT_THAT(infer_error("logical_and", {x, x}), HasSubstr("f32"));
    EXPECT_THAT(infer_error("is_nan", {TensorType{DType::i32, {2}}}), HasSubstr("i32"));
}

}  // namespace
}  // namespace headrace::testing
