#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "ir/constant.h"
#include "ir/graph.h"

/// Runs graphs with nothing but reference kernels: what passes must not change.
namespace headrace::testing {

/// The bytes of a graph's outputs, and of its states after the run as "state <name>".
using Results = std::map<std::string, std::pair<TensorType, AlignedBuffer>>;

class Interpreter {
public:
    explicit Interpreter(const Graph& graph) : graph_(graph), data_(graph.values.size()) {
        for (std::size_t i = 0; i < graph.values.size(); ++i) {
            data_[i] = AlignedBuffer::allocate(graph.values[i].type.bytes(), "a test").value();
            shapes_.push_back(graph.values[i].type.sizes());
        }
    }

    /// Inputs hold values that depend on their names alone, states their initial ones.
    Results run() {
        for (std::size_t i = 0; i < graph_.values.size(); ++i) {
            const Value& v = graph_.values[i];
            if (v.kind == ValueKind::input) fill(v, data_[i].data());
            if (v.kind == ValueKind::state) std::fill_n(data_[i].data(), data_[i].bytes(), std::byte{0});
            if (v.constant)
                std::copy_n(AlignedBytes::of(*v.constant).value().data(), data_[i].bytes(), data_[i].data());
        }
        for (const Node& node : graph_.nodes) execute(node);
        Results results;
        for (const auto& [name, id] : graph_.outputs) results[name] = copy_of(id);
        for (ValueId id : graph_.states) results["state " + graph_.value(id).name] = copy_of(id);
        return results;
    }

private:
    static void fill(const Value& v, std::byte* to) {
        std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(v.name)));
        visit_dtype(v.type.dtype, [&]<class T>() {
            for (std::int64_t i = 0; i < v.type.elements(); ++i)
                reinterpret_cast<T*>(to)[i] =
                    static_cast<T>(std::uniform_real_distribution<float>(-2, 2)(random));
        });
    }

    void execute(const Node& node) {
        std::vector<ConstView> in;
        for (ValueId id : node.inputs)
            in.push_back(id == kNoValue ? ConstView{}
                                        : ConstView{graph_.value(id).type.dtype, shapes_[id],
                                                    data_[id].data(), graph_.value(id).type.format});
        in.resize(std::max(in.size(), node.op->operands.size()));
        std::vector<MutView> out;
        for (ValueId id : node.outputs)
            out.push_back({graph_.value(id).type.dtype, shapes_[id], data_[id].data()});
        if (!node.op->is_pure()) {  // the output is the state's memory
            std::byte* state = data_[node.inputs[node.op->writes_state]].data();
            out[0].data = state;
            node.op->reference({in, out, {}}, node.attrs.get());
            AlignedBuffer& result = data_[node.outputs[0]];
            std::copy_n(state, result.bytes(), result.data());
            return;
        }
        node.op->reference({in, out, {}}, node.attrs.get());
    }

    std::pair<TensorType, AlignedBuffer> copy_of(ValueId id) const {
        auto copy = AlignedBuffer::allocate(data_[id].bytes(), "a test").value();
        std::copy_n(data_[id].data(), data_[id].bytes(), copy.data());
        return {graph_.value(id).type, std::move(copy)};
    }

    const Graph& graph_;
    std::vector<AlignedBuffer> data_;
    std::vector<std::vector<std::int64_t>> shapes_;
};

/// The tolerance for a pass that adds or multiplies in another order.
constexpr double kTolerance = 1e-5;

/// Both graphs give the same results; floats may differ by `tolerance` relative to max(1, |expected|).
inline void expect_same_results(const Graph& before, const Graph& after, double tolerance = 0) {
    const Results expected = Interpreter(before).run(), actual = Interpreter(after).run();
    ASSERT_EQ(expected.size(), actual.size());
    for (const auto& [name, result] : expected) {
        const auto& [type, bytes] = result;
        const auto found = actual.find(name);
        ASSERT_NE(found, actual.end()) << name;
        ASSERT_EQ(type, found->second.first) << name;
        const AlignedBuffer& other = found->second.second;
        visit_dtype(type.dtype, [&]<class T>() {
            for (std::int64_t i = 0; i < type.elements(); ++i) {
                const auto x = static_cast<double>(
                    static_cast<compute_t<T>>(reinterpret_cast<const T*>(bytes.data())[i]));
                const auto y = static_cast<double>(
                    static_cast<compute_t<T>>(reinterpret_cast<const T*>(other.data())[i]));
                ASSERT_LE(std::abs(x - y), tolerance * std::max(1.0, std::abs(x))) << name << "[" << i << "]";
            }
        });
    }
}

}  // namespace headrace::testing
