#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "ir/graph_builder.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "ops/catalog.h"
#include "passes/pipeline.h"

/// Graphs in a few lines, and what is left of them as text.
namespace headrace::testing {

template <class T>
T must(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return std::move(result).value();
}

/// Errors are exceptions, hence test failures.
struct TinyGraph {
    GraphBuilder builder;

    ValueId input(const std::string& name, Shape shape, DType dtype = DType::f32) {
        return must(builder.input(name, {dtype, std::move(shape)}));
    }
    ValueId state(const std::string& name, Shape shape) {
        return must(builder.state(name, {DType::f32, std::move(shape)}));
    }
    /// f32 values that depend on `seed`.
    ValueId constant(const std::string& name, Shape shape, unsigned seed = 1) {
        const TensorType type{DType::f32, std::move(shape)};
        std::mt19937 random(seed);
        std::vector<float> values(static_cast<std::size_t>(type.elements()));
        for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
        return must(builder.constant(type, std::as_bytes(std::span(values)), name));
    }
    template <class T>
    ValueId constant(const std::string& name, DType dtype, Shape shape, const std::vector<T>& values) {
        return must(builder.constant({dtype, std::move(shape)}, std::as_bytes(std::span(values)), name));
    }
    ValueId op(std::string_view name, std::vector<ValueId> operands, const NamedAttrs& attrs = {},
               std::string label = "") {
        return many(name, std::move(operands), attrs, std::move(label))[0];
    }
    std::vector<ValueId> many(std::string_view name, std::vector<ValueId> operands,
                              const NamedAttrs& attrs = {}, std::string label = "") {
        const OpDef* def = find_op(name);
        if (!def) throw std::runtime_error("no op " + std::string(name));
        return must(builder.op(*def, std::move(operands), attrs, std::move(label)));
    }
    void output(const std::string& name, ValueId id) { must(builder.mark_output(name, id)); }
    Graph finish() { return must(builder.finish()); }
};

/// The formula of a value: `add(x, relu(w)) {attributes}`. Inputs, states and constants go by their names.
inline std::string formula(const Graph& graph, ValueId id) {
    if (id == kNoValue) return "_";
    const Value& v = graph.value(id);
    if (v.kind != ValueKind::result) return v.name.empty() ? "constant" : v.name;
    const Node& node = graph.node(v.producer);
    std::string text = std::string(node.op->name) + "(";
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
        text.append(i ? ", " : "").append(formula(graph, node.inputs[i]));
    text += ")";
    const std::string line = print(graph, node);
    if (const auto open = line.find(" {"); open != std::string::npos)
        text += line.substr(open, line.find('}') + 1 - open);
    return node.outputs.size() == 1 ? text : text + "#" + std::to_string(v.output_index);
}

inline std::string formula(const Graph& graph, const std::string& output) {
    for (const auto& [name, id] : graph.outputs)
        if (name == output) return formula(graph, id);
    return "no output " + output;
}

/// Runs one pass, which must succeed and leave a well-formed graph.
inline Counts run_pass(std::string_view name, Graph& graph, const PassContext& context = {}) {
    const Pass* pass = find_pass(name);
    if (!pass) throw std::runtime_error("no pass " + std::string(name));
    auto counts = pass->run(graph, context);
    EXPECT_TRUE(counts.ok()) << counts.error().message;
    const Status status = verify(graph);
    EXPECT_TRUE(status.ok()) << status.error().message << "\n" << print(graph);
    return counts.ok() ? counts.value() : Counts{};
}

}  // namespace headrace::testing
