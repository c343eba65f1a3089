#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/interpret.h"
#include "passes/tiny_graph.h"

namespace headrace::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Extents = std::vector<std::int64_t>;

/// Graphs between quantize_linear and dequantize_linear.
struct QuantizedGraph : TinyGraph {
    ValueId scale(float x) { return constant("", DType::f32, {}, std::vector<float>{x}); }
    ValueId zero(DType type, int x) {
        return constant("", type, {}, std::vector<std::int8_t>{static_cast<std::int8_t>(x)});
    }
    /// An input in integers, as real ones.
    ValueId real_input(const std::string& name, Shape shape, float s, int z, DType type = DType::u8) {
        return op("dequantize_linear",
                  {quantized(input(name, std::move(shape)), s, z, type), scale(s), zero(type, z)});
    }
    ValueId quantized(ValueId x, float s, int z, DType type = DType::u8) {
        return op("quantize_linear", {x, scale(s), zero(type, z)});
    }
    /// Weights drawn from the integer type; one scale and zero point for all, or for each place of the first
    /// axis.
    ValueId real_weights(Shape shape, DType type, Shape scales, int z) {
        const auto elements = TensorType{type, shape}.elements(),
                   count = TensorType{DType::f32, scales}.elements();
        std::mt19937 random(static_cast<unsigned>(elements));
        std::vector<std::int8_t> integer(static_cast<std::size_t>(elements));
        for (auto& w : integer) w = static_cast<std::int8_t>(random());
        std::vector<float> s;
        for (std::int64_t i = 0; i < count; ++i) s.push_back(0.003f * static_cast<float>(1 + i % 5));
        const std::vector<std::int8_t> zeros(static_cast<std::size_t>(count), static_cast<std::int8_t>(z));
        return op("dequantize_linear",
                  {constant("w", type, std::move(shape), integer), constant("", DType::f32, scales, s),
                   constant("", type, scales, zeros)});
    }
    ValueId real_bias(float unit, const std::vector<std::int32_t>& integer) {
        return op(
            "dequantize_linear",
            {constant("b", DType::i32, {static_cast<std::int64_t>(integer.size())}, integer), scale(unit)});
    }
};

/// The pass gives what real numbers give, within a step.
Graph expect_within_a_step(Graph before) {
    Graph after = before;
    run_pass("fake_quantization_to_integer", after);
    const Results expected = Interpreter(before).run(), actual = Interpreter(after).run();
    for (const auto& [name, result] : expected) {
        const auto& [type, bytes] = result;
        EXPECT_EQ(type, actual.at(name).first);
        int steps = 0;
        for (std::int64_t i = 0; i < type.elements(); ++i) {
            const auto at = [&](const AlignedBuffer& b) {
                const int byte = std::to_integer<int>(b.data()[i]);
                return type.dtype == DType::i8 && byte > 127 ? byte - 256 : byte;
            };
            steps = std::max(steps, std::abs(at(bytes) - at(actual.at(name).second)));
        }
        EXPECT_LE(steps, 1) << name;
    }
    return after;
}

TEST(FakeQuantizationToInteger, MultipliesConvolutionsWithLimitsAndKeepsTheirBytes) {
    for (const DType weights : {DType::i8, DType::u8})
        for (const bool per_channel : {false, true}) {
            QuantizedGraph t;
            const ValueId x = t.real_input("x", {2, 6, 7, 5}, 0.02f, 130);
            const Shape scales = per_channel ? Shape{4, 1, 1, 1} : Shape{};
            const ValueId w = t.real_weights({4, 3, 3, 3}, weights, scales, weights == DType::u8 ? 128 : 0);
            const ValueId conv = t.op("conv2d", {x, w, t.real_bias(0.02f * 0.003f, {5, -700, 31, 2000})},
                                      {{"groups", std::int64_t{2}}, {"padding", Extents{1, 1, 1, 1}}});
            const ValueId y =
                t.quantized(t.op("clamp", {conv}, {{"min_value", 0.0}, {"max_value", 1.5}}), 0.011f, 12);
            t.output("y", t.quantized(t.op("relu", {t.op("dequantize_linear",
                                                         {y, t.scale(0.011f), t.zero(DType::u8, 12)})}),
                                      0.011f, 12));
            const Graph after = expect_within_a_step(t.finish());
            EXPECT_THAT(formula(after, "y"), HasSubstr("quantized_conv2d(transpose(quantize_linear(x"));
            EXPECT_THAT(formula(after, "y"), HasSubstr("min_value=12"));
        }
}

TEST(FakeQuantizationToInteger, TakesWeightsLessTheirZeroPointsThatNeedNineBits) {
    QuantizedGraph t;
    const ValueId x = t.real_input("x", {3, 40}, 0.02f, -7, DType::i8);
    const ValueId w = t.real_weights({40, 9}, DType::u8, {9}, 3);
    t.output("y", t.quantized(t.op("matmul", {x, w}), 0.2f, 5, DType::i8));
    const Graph after = expect_within_a_step(t.finish());
    EXPECT_THAT(formula(after, "y"), StartsWith("quantized_matmul("));
    bool has_words = false;
    for (const Value& v : after.values) has_words = has_words || v.type == TensorType{DType::i16, {40, 9}};
    EXPECT_TRUE(has_words);
}

TEST(FakeQuantizationToInteger, MultipliesGemmWithABias) {
    QuantizedGraph t;
    const ValueId x = t.real_input("x", {3, 20}, 0.02f, 128);
    const ValueId w = t.real_weights({6, 20}, DType::i8, {6, 1}, 0);
    t.output("y",
             t.quantized(t.op("gemm", {x, w, t.constant("bias", {6})}, {{"b_transpose", true}}), 0.05f, 100));
    EXPECT_THAT(formula(expect_within_a_step(t.finish()), "y"), StartsWith("quantized_matmul("));
}

TEST(FakeQuantizationToInteger, AddsAndMovesBytes) {
    QuantizedGraph t;
    const ValueId a = t.real_input("a", {2, 3, 4}, 0.02f, 128),
                  b = t.real_input("b", {2, 3, 4}, 0.01f, 3, DType::i8);
    const ValueId sum = t.quantized(t.op("relu", {t.op("add", {a, b})}), 0.03f, 0);
    const auto real = [&] { return t.op("dequantize_linear", {sum, t.scale(0.03f), t.zero(DType::u8, 0)}); };
    const ValueId turned = t.op("transpose", {real()}, {{"permutation", Extents{0, 2, 1}}});
    const ValueId rows = t.op("reshape", {turned}, {{"new_shape", Extents{8, 3}}});
    const ValueId also = t.op("reshape", {real()}, {{"new_shape", Extents{8, 3}}});
    t.output("y", t.quantized(t.op("concat", {rows, also}, {{"axis", std::int64_t{1}}}), 0.03f, 0));
    const Graph after = expect_within_a_step(t.finish());
    EXPECT_THAT(formula(after, "y"), StartsWith("concat(reshape(transpose(quantized_add(quantize_linear(a"));
    EXPECT_THAT(formula(after, "y"), Not(HasSubstr("dequantize_linear")));
}

TEST(FakeQuantizationToInteger, LeavesOutAPairThatChangesNothing) {
    QuantizedGraph t;
    t.output("y", t.quantized(t.real_input("x", {5}, 0.02f, 128), 0.02f, 128));
    EXPECT_THAT(formula(expect_within_a_step(t.finish()), "y"), StartsWith("quantize_linear(x"));
}

TEST(FakeQuantizationToInteger, LeavesRealNumbersThatOthersRead) {
    QuantizedGraph t;
    const ValueId x = t.real_input("x", {3, 20}, 0.02f, 128);
    const ValueId product = t.op("matmul", {x, t.real_weights({20, 6}, DType::i8, {}, 0)});
    t.output("y", t.quantized(product, 0.05f, 100));
    t.output("real", t.op("relu", {product}));
    Graph after = t.finish();
    EXPECT_EQ(run_pass("fake_quantization_to_integer", after)["products"], 0);
}

TEST(FakeQuantizationToInteger, MultipliesExactlyToRealNumbersWhatNothingQuantizes) {
    for (const bool transposed : {false, true}) {
        QuantizedGraph t;
        const ValueId x = t.real_input("x", {3, 20}, 0.02f, 128);
        const Shape shape = transposed ? Shape{6, 20} : Shape{20, 6};
        const ValueId w = t.real_weights(shape, DType::u8, transposed ? Shape{6, 1} : Shape{6}, 117);
        t.output("y", t.op("gemm", {x, w, t.constant("bias", {6})}, {{"b_transpose", transposed}}));
        const Graph before = t.finish();
        Graph after = before;
        EXPECT_EQ(run_pass("fake_quantization_to_integer", after)["real_products"], 1);
        EXPECT_THAT(formula(after, "y"), StartsWith("add(mul(cast(matmul_integer(quantize_linear(x"));
        expect_same_results(before, after, 1e-5);
    }
}

TEST(FakeQuantizationToInteger, LeavesWhatMovesToAnotherScale) {
    QuantizedGraph t;
    const ValueId x = t.real_input("x", {6}, 0.02f, 128);
    t.output("y", t.quantized(t.op("reshape", {x}, {{"new_shape", Extents{2, 3}}}), 0.03f, 128));
    Graph after = t.finish();
    EXPECT_EQ(run_pass("fake_quantization_to_integer", after)["moves"], 0);
}

TEST(FakeQuantizationToInteger, LeavesGraphsThatOtherDevicesRun) {
    QuantizedGraph t;
    const ValueId x = t.real_input("x", {3, 20}, 0.02f, 128);
    t.output("y", t.quantized(t.op("matmul", {x, t.real_weights({20, 6}, DType::i8, {}, 0)}), 0.05f, 100));
    Graph after = t.finish();
    const std::string before = formula(after, "y");
    run_pass("fake_quantization_to_integer", after, {.runs_on_cpu = false});
    EXPECT_EQ(formula(after, "y"), before);
}

}  // namespace
}  // namespace headrace::testing
