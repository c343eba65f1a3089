#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "headrace/headrace.h"
#include "ir/graph_builder.h"
#include "ops/catalog.h"

namespace headrace::testing {

template <class T>
T must(Result<T> result) {
    if (!result.ok()) throw std::runtime_error(result.error().message);
    return std::move(result).value();
}

/// Reproducible floats in [-1, 1).
inline std::vector<float> random_floats(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> real(-1, 1);
    std::vector<float> values(count);
    for (float& v : values) v = real(random);
    return values;
}

/// Builds a graph in a line or two a node; any error is a test failure by exception.
struct TestGraph {
    GraphBuilder builder;

    ValueId input(const std::string& name, Shape shape, DType dtype = DType::f32) {
        return must(builder.input(name, {dtype, std::move(shape)}));
    }
    ValueId state(const std::string& name, Shape shape) {
        return must(builder.state(name, {DType::f32, std::move(shape)}));
    }
    template <class T>
    ValueId constant(Shape shape, const std::vector<T>& values, DType dtype = DType::f32) {
        return must(builder.constant({dtype, std::move(shape)}, std::as_bytes(std::span(values))));
    }
    ValueId op(const std::string& name, std::vector<ValueId> operands, const NamedAttrs& attrs = {}) {
        const OpDef* def = find_op(name);
        if (!def) throw std::runtime_error("no op " + name);
        return must(builder.op(*def, std::move(operands), attrs))[0];
    }
    void output(const std::string& name, ValueId id) { must(builder.mark_output(name, id)); }
    Graph finish() { return must(builder.finish()); }
};

/// Runs a session on floats; every output is f32.
inline std::vector<std::vector<float>> run(Session& session,
                                           const std::vector<std::vector<std::int64_t>>& shapes,
                                           const std::vector<std::vector<float>>& inputs) {
    std::vector<InputView> in;
    for (std::size_t i = 0; i < inputs.size(); ++i) in.push_back({DType::f32, shapes[i], inputs[i].data()});
    std::vector<std::vector<float>> outputs;
    for (const auto& shape : session.output_shapes(shapes)) {
        std::size_t n = 1;
        for (std::int64_t d : shape) n *= static_cast<std::size_t>(d);
        outputs.emplace_back(n);
    }
    std::vector<OutputView> out;
    for (auto& o : outputs) out.push_back({o.data(), o.size() * sizeof(float)});
    session.run(in, out);
    return outputs;
}

inline void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                         float tolerance) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
        ASSERT_NEAR(actual[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i]))) << "at " << i;
}

/// The message of the Exception that a call throws; fails when it throws none.
template <class F>
std::string message_of(F&& call, Code code) {
    try {
        call();
    } catch (const Exception& e) {
        EXPECT_EQ(e.code(), code) << e.what();
        return e.what();
    }
    ADD_FAILURE() << "no exception";
    return "";
}

}  // namespace headrace::testing
