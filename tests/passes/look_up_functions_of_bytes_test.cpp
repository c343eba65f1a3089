#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Functions of quantised numbers.
struct FunctionGraph : TinyGraph {
    ValueId scale(float x) { return constant("", DType::f32, {}, std::vector<float>{x}); }
    ValueId zero(DType type, int x) {
        return constant("", type, {}, std::vector<std::int8_t>{static_cast<std::int8_t>(x)});
    }
    ValueId rounded(ValueId x, float s, int z, DType type = DType::u8) {
        return op("quantize_linear", {x, scale(s), zero(type, z)});
    }
    ValueId real(ValueId x, float s, int z, DType type = DType::u8) {
        return op("dequantize_linear", {x, scale(s), zero(type, z)});
    }
    /// An input in bytes, as real numbers.
    ValueId real_input(const std::string& name, Shape shape, float s, int z, DType type = DType::u8) {
        return again(input(name, std::move(shape)), s, z, type);
    }
    /// As real numbers, rounded once more.
    ValueId again(ValueId x, float s, int z, DType type = DType::u8) {
        return real(rounded(x, s, z, type), s, z, type);
    }
};

std::int64_t count_functions(const Graph& before, Graph& after) {
    after = before;
    const auto functions = run_pass("look_up_functions_of_bytes", after)["functions"];
    expect_same_results(before, after, 0);
    return functions;
}

TEST(LookUpFunctionsOfBytes, MakesOneTableOfAnActivationWithRoundingsBetween) {
    for (const DType type : {DType::u8, DType::i8}) {
        FunctionGraph t;
        const ValueId x = t.real_input("x", {2, 3, 50}, 0.02f, type == DType::u8 ? 120 : 7, type);
        const ValueId erf = t.again(t.op("erf", {t.op("div", {x, t.scale(1.4142135f)})}), 0.01f, 128);
        const ValueId shifted = t.again(t.op("add", {erf, t.scale(1)}), 0.02f, 3);
        const ValueId product = t.again(t.op("mul", {x, shifted}), 0.05f, 10, DType::i8);
        const ValueId half = t.constant("", DType::f32, {1}, std::vector<float>{0.5f});
        t.output("y", t.rounded(t.op("mul", {product, half}), 0.025f, 10));
        Graph after;
        EXPECT_EQ(count_functions(t.finish(), after), 4);
        EXPECT_THAT(formula(after, "y"), StartsWith("byte_table(quantize_linear(x"));
        EXPECT_EQ(after.nodes.size(), 2u);
    }
}

TEST(LookUpFunctionsOfBytes, LeavesFunctionsOfTwoBytesAndOfListsOfConstants) {
    FunctionGraph t;
    const ValueId a = t.real_input("a", {4, 5}, 0.02f, 120), b = t.real_input("b", {4, 5}, 0.02f, 120);
    t.output("sum", t.rounded(t.op("add", {a, b}), 0.2f, 100));
    t.output("scaled", t.rounded(t.op("mul", {a, t.constant("w", {5})}), 0.2f, 100));
    t.output("reduced", t.rounded(t.op("softmax", {a}, {{"axis", std::int64_t{1}}}), 0.004f, 0));
    Graph after;
    EXPECT_EQ(count_functions(t.finish(), after), 0);
}

TEST(LookUpFunctionsOfBytes, KeepsRealNumbersThatOthersRead) {
    FunctionGraph t;
    const ValueId x = t.real_input("x", {9}, 0.02f, 120);
    const ValueId y = t.op("sigmoid", {x});
    t.output("real", y);
    t.output("y", t.rounded(y, 0.004f, 0));
    Graph after;
    EXPECT_EQ(count_functions(t.finish(), after), 1);
    EXPECT_THAT(formula(after, "y"), StartsWith("byte_table(quantize_linear(x"));
    EXPECT_THAT(formula(after, "real"), HasSubstr("sigmoid(dequantize_linear(quantize_linear(x"));
}

TEST(LookUpFunctionsOfBytes, LeavesAPairThatOnlyRoundsAgainAndGraphsOfOtherDevices) {
    FunctionGraph t;
    const ValueId x = t.real_input("x", {9}, 0.02f, 120);
    t.output("y", t.rounded(x, 0.02f, 120));
    Graph after;
    EXPECT_EQ(count_functions(t.finish(), after), 0);

    FunctionGraph other;
    const ValueId z = other.real_input("x", {9}, 0.02f, 120);
    other.output("y", other.rounded(other.op("tanh", {z}), 0.01f, 128));
    Graph unchanged = other.finish();
    run_pass("look_up_functions_of_bytes", unchanged, {.runs_on_cpu = false});
    EXPECT_THAT(formula(unchanged, "y"), Not(HasSubstr("byte_table")));
}

}  // namespace
}  // namespace headrace::testing
