#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "test_graph.h"

namespace headrace::testing {

/// A sample of an op in the catalog.
struct Case {
    const OpDef* op;
    Sample sample;
    std::size_t index;
};

inline std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (const OpDef* op : all_ops()) {
        const auto samples = op->samples ? op->samples() : std::vector<Sample>{};
        for (std::size_t i = 0; i < samples.size(); ++i) cases.push_back({op, samples[i], i});
    }
    return cases;
}

/// Small numbers, so that products of any length stay near 1.
inline void fill_blocks(const TensorType& type, std::mt19937& random, std::vector<std::byte>& bytes) {
    std::uniform_real_distribution<float> real(-0.1f, 0.1f);
    std::vector<float> values(static_cast<std::size_t>(type.elements()));
    for (float& v : values) v = real(random);
    quantize_rows(type.format, values.data(), 1, type.elements(), bytes.data());
}

inline std::vector<std::byte> fill(const SampleOperand& operand, unsigned seed) {
    const std::int64_t n = operand.type.elements();
    std::vector<std::byte> bytes(operand.type.bytes());
    std::mt19937 random(seed);
    if (operand.type.format != BlockFormat::plain) {
        fill_blocks(operand.type, random, bytes);
        return bytes;
    }
    if (bits_of(operand.type.dtype) == 4) {
        for (std::byte& b : bytes) b = static_cast<std::byte>(random());
        return bytes;
    }
    visit_dtype(operand.type.dtype, [&]<class T>() {
        T* values = reinterpret_cast<T*>(bytes.data());
        std::uniform_real_distribution<double> real(operand.low, operand.high);
        for (std::int64_t i = 0; i < n; ++i) {
            const double v = real(random);
            values[i] =
                static_cast<T>(static_cast<compute_t<T>>(is_float(operand.type.dtype) ? v : std::round(v)));
        }
    });
    return bytes;
}

/// The op alone in a graph; states for operands that it writes.
struct Built {
    Graph graph;
    std::vector<std::vector<std::byte>> inputs;
};

inline Built build(const Case& c) {
    Built built;
    GraphBuilder builder;
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < c.sample.operands.size(); ++i) {
        const SampleOperand& operand = c.sample.operands[i];
        const auto bytes = fill(operand, static_cast<unsigned>(i + 1));
        const std::string name = "x" + std::to_string(i);
        if (operand.absent) {
            operands.push_back(kNoValue);
        } else if (static_cast<int>(i) == c.op->writes_state) {
            auto owner = std::make_shared<std::vector<std::byte>>(bytes);
            auto initial = std::make_shared<Constant>(Constant{.bytes = *owner, .owner = owner});
            operands.push_back(must(builder.state(name, operand.type, std::move(initial))));
        } else if (operand.constant) {
            operands.push_back(must(builder.constant(operand.type, bytes, name)));
        } else {
            operands.push_back(must(builder.input(name, operand.type)));
            built.inputs.push_back(bytes);
        }
    }
    const auto results = must(builder.op(*c.op, operands, c.sample.attrs));
    for (std::size_t i = 0; i < results.size(); ++i)
        must(builder.mark_output("y" + std::to_string(i), results[i]));
    built.graph = must(builder.finish());
    return built;
}

}  // namespace headrace::testing
