#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "engine/test_graph.h"

namespace headrace::testing {

/// Infinities, NaN, both zeros, numbers near 0 and near 1, halves, and numbers whose squares or exponentials
/// are infinite.
inline std::vector<float> special_values() {
    std::vector<float> values;
    for (const float size : {0.0f,      1e-30f, 1e-6f, 1e-3f, 0.2f, 0.25f, 0.5f,  0.75f, 0.999999f, 1.0f,
                             1.000001f, 1.5f,   2.0f,  2.5f,  3.0f, 10.0f, 88.9f, 1e10f, 3e38f,     INFINITY})
        values.insert(values.end(), {size, -size});
    values.push_back(NAN);
    return values;
}

/// An op on special values, and within which error relative to the number itself it is computed.
struct SpecialCase {
    std::string op;
    NamedAttrs attrs = {};
    float tolerance = 4e-6f;
};

inline std::vector<SpecialCase> special_functions() {
    return {{"abs"},
            {"acos"},
            {"acosh"},
            {"asin"},
            {"asinh"},
            {"atan"},
            {"atanh"},
            {"clamp", {{"min_value", -1.0}, {"max_value", 2.0}}},
            {"cosh", {}, 2e-5f},
            {"elu", {{"alpha", 1.5}}},
            {"erf"},
            {"expm1", {}, 2e-5f},
            {"hard_sigmoid"},
            {"leaky_relu", {{"alpha", 0.5}}},
            {"log10"},
            {"log1p"},
            {"log2"},
            {"reciprocal"},
            {"relu"},
            {"round_even"},
            {"sign"},
            {"sinh", {}, 2e-5f},
            {"softplus"},
            {"softsign"}};
}

/// The functions of two numbers, each with all pairs of special values.
inline std::vector<SpecialCase> special_functions_of_two() {
    return {{"atan2"}, {"max"}, {"min"}, {"pow", {}, 3e-5f}, {"prelu"}};
}

inline bool is_same(float actual, float expected, float tolerance) {
    if (std::isnan(expected)) return std::isnan(actual);
    // Devices need not have subnormal numbers.
    return actual == expected || std::abs(actual - expected) < 1.2e-38f ||
           std::abs(actual - expected) <= tolerance * std::abs(expected);
}

/// What runs with the options give, beside what the reference kernels do.
inline void expect_special_values(const CompileOptions& options) {
    const std::vector<float> values = special_values();
    const auto count = static_cast<std::int64_t>(values.size());
    std::vector<float> left, right;
    for (const float a : values)
        for (const float b : values) left.push_back(a), right.push_back(b);
    const auto compare = [&](const SpecialCase& c, const std::vector<std::vector<std::int64_t>>& shapes,
                             const std::vector<std::vector<float>>& inputs) {
        TestGraph g;
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < shapes.size(); ++i)
            operands.push_back(g.input(std::string(1, static_cast<char>('a' + i)), {shapes[i][0]}));
        g.output("y", g.op(c.op, operands, c.attrs));
        const Graph graph = g.finish();
        Session here(compile(graph, {.threads = 1, .packed_kernels = false, .native_ops = false}));
        Session there(compile(graph, options));
        const auto expected = run(here, shapes, inputs)[0], actual = run(there, shapes, inputs)[0];
        EXPECT_NE(there.stats().nodes[0].implementation, "reference") << c.op;
        for (std::size_t i = 0; i < expected.size(); ++i)
            EXPECT_TRUE(is_same(actual[i], expected[i], c.tolerance))
                << c.op << " of " << inputs[0][i] << (inputs.size() > 1 ? " and " : "")
                << (inputs.size() > 1 ? std::to_string(inputs[1][i]) : "") << " is " << actual[i] << ", not "
                << expected[i];
    };
    for (const SpecialCase& c : special_functions()) compare(c, {{count}}, {values});
    for (const SpecialCase& c : special_functions_of_two()) {
        std::vector<float> b = right;
        if (c.op == "prelu")  // a slope that is not finite shows beside negative numbers, too
            for (float& slope : b) slope = std::isfinite(slope) ? slope : 0.5f;
        compare(c, {{count * count}, {count * count}}, {left, b});
    }
}

/// Reductions of rows with special values, and pools of windows that reach beyond the image.
inline Graph graph_of_largest() {
    TestGraph g;
    const ValueId x = g.input("x", {6, 4});
    using List = std::vector<std::int64_t>;
    for (const char* op : {"reduce_max", "reduce_min", "reduce_log_sum_exp", "reduce_product"})
        g.output(op, g.op(op, {x}, {{"axes", List{1}}}));
    const ValueId image = g.op("reshape", {x}, {{"new_shape", Shape{1, 1, 6, 4}}});
    const NamedAttrs window{
        {"window_dimensions", List{3, 2}}, {"padding", List{2, 0, 1, 2}}, {"dilations", List{1, 2}}};
    for (const char* op : {"max_pool2d", "average_pool2d", "l2_pool2d"})
        g.output(op, g.op(op, {image}, window));
    g.output("plain", g.op("max_pool2d", {image}, {{"window_dimensions", List{1, 2}}}));
    const List one{1, 2};
    g.output("margin",
             g.op("pad", {x}, {{"beginning_padding", one}, {"ending_padding", one}, {"value", -INFINITY}}));
    g.output(
        "mirror",
        g.op("pad", {x},
             {{"beginning_padding", one}, {"ending_padding", one}, {"mode", std::string("reflection")}}));
    g.output("sums", g.op("cumulative_sum", {x}, {{"axis", std::int64_t{0}}, {"reversed", true}}));
    g.output("corner", g.op("triangular", {x}, {{"diagonal", std::int64_t{1}}}));
    return g.finish();
}

/// Every relation between special values decides between them.
inline void expect_special_choices(const CompileOptions& options) {
    const std::vector<float> values = special_values();
    std::vector<float> left, right;
    for (const float a : values)
        for (const float b : values) left.push_back(a), right.push_back(b);
    const auto count = static_cast<std::int64_t>(left.size());
    TestGraph g;
    const ValueId a = g.input("a", {count}), b = g.input("b", {count});
    for (const char* op : {"equal", "not_equal", "greater", "greater_or_equal", "lesser", "lesser_or_equal"})
        g.output(op, g.op("where", {g.op(op, {a, b}), a, g.op("neg", {b})}));
    const Graph graph = g.finish();
    Session here(compile(graph, {.threads = 1, .packed_kernels = false, .native_ops = false}));
    Session there(compile(graph, options));
    const auto expected = run(here, {{count}, {count}}, {left, right}),
               actual = run(there, {{count}, {count}}, {left, right});
    for (std::size_t o = 0; o < expected.size(); ++o)
        for (std::size_t i = 0; i < expected[o].size(); ++i)
            EXPECT_TRUE(
                is_same(actual[o][i], expected[o][i], 0) &&
                (std::isnan(expected[o][i]) || std::signbit(actual[o][i]) == std::signbit(expected[o][i])))
                << left[i] << " " << graph.outputs[o].first << " " << right[i] << ": " << actual[o][i]
                << ", not " << expected[o][i];
}

inline void expect_special_largest(const CompileOptions& options) {
    const Graph graph = graph_of_largest();
    const std::vector<float> x{1,        -2,        3,  0.5f,  -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                               INFINITY, 1,         -3, -4,    NAN,       1,         2,         3,
                               -0.0f,    -INFINITY, 7,  1e-3f, 3e38f,     -3e38f,    0.25f,     8};
    Session here(compile(graph, {.threads = 1, .packed_kernels = false, .native_ops = false}));
    Session there(compile(graph, options));
    const auto expected = run(here, {{6, 4}}, {x}), actual = run(there, {{6, 4}}, {x});
    for (std::size_t o = 0; o < expected.size(); ++o)
        for (std::size_t i = 0; i < expected[o].size(); ++i)
            EXPECT_TRUE(is_same(actual[o][i], expected[o][i], 4e-6f))
                << graph.outputs[o].first << " " << i << " is " << actual[o][i] << ", not " << expected[o][i];
}

/// Infinities and NaN beside points that do not touch them.
inline void expect_special_resizing(const CompileOptions& options) {
    const std::vector<float> x{1, INFINITY, 3, -4, 5, 6, NAN, 8, -INFINITY, 10, 11, 12};
    TestGraph g;
    const ValueId image = g.input("x", {1, 1, 4, 3});
    for (const std::string coordinates : {"edges", "half_pixel_or_first"})
        for (const std::vector<std::int64_t>& sizes :
             {std::vector<std::int64_t>{8, 3}, {4, 9}, {3, 5}, {1, 6}})
            g.output(coordinates + std::to_string(sizes[0]),
                     g.op("resample_linear2d", {image}, {{"sizes", sizes}, {"coordinates", coordinates}}));
    const Graph graph = g.finish();
    Session here(compile(graph, {.threads = 1, .packed_kernels = false, .native_ops = false}));
    Session there(compile(graph, options));
    const std::vector<std::int64_t> shape{1, 1, 4, 3};
    const auto expected = run(here, {shape}, {x}), actual = run(there, {shape}, {x});
    for (std::size_t o = 0; o < expected.size(); ++o)
        for (std::size_t i = 0; i < expected[o].size(); ++i)
            EXPECT_TRUE(is_same(actual[o][i], expected[o][i], 4e-6f))
                << graph.outputs[o].first << " " << i << " is " << actual[o][i] << ", not " << expected[o][i];
}

}  // namespace headrace::testing
