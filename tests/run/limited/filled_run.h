#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "engine/sample_outcome.h"

namespace headrace::testing {

/// x, if that is within (-3, 3), by an op that has no lowering.
inline ValueId on_the_cpu(TestGraph& g, ValueId x) { return g.op("fmod", {x, g.constant<float>({}, {3})}); }

/// What runs of one session on reproducible inputs gave.
struct Ran {
    std::vector<std::vector<std::byte>> outputs;  ///< of the last run
    RunStats stats;

    std::vector<std::string> devices() const {
        std::vector<std::string> names;
        for (const NodeStats& node : stats.nodes) names.push_back(node.device);
        return names;
    }
    std::int64_t nodes_on(const std::string& device) const {
        const auto names = devices();
        return std::count(names.begin(), names.end(), device);
    }
};

struct Filled {
    std::vector<std::vector<std::byte>> bytes;
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<InputView> inputs;

    explicit Filled(const Graph& graph) {
        for (ValueId id : graph.inputs) {
            const TensorType& type = graph.value(id).type;
            const double low = type.dtype == DType::boolean ? 0 : -1;
            bytes.push_back(fill({.type = type, .low = low, .high = 1}, static_cast<unsigned>(id) + 1));
            shapes.push_back(type.sizes());
        }
        for (std::size_t i = 0; i < bytes.size(); ++i)
            inputs.push_back({graph.value(graph.inputs[i]).type.dtype, shapes[i], bytes[i].data()});
    }
};

/// Runs `times`, so that states have been written and memory was used before.
inline Ran run_filled(Session& session, const Graph& graph, int times = 2) {
    const Filled filled(graph);
    Ran ran;
    std::vector<OutputView> outputs;
    for (const auto& [name, id] : graph.outputs) ran.outputs.emplace_back(graph.value(id).type.bytes());
    for (auto& bytes : ran.outputs) outputs.push_back({bytes.data(), bytes.size()});
    for (int i = 0; i < times; ++i) session.run(filled.inputs, outputs);
    ran.stats = session.stats();
    return ran;
}

inline Ran run_filled(const Graph& graph, const CompileOptions& options) {
    Session session(compile(graph, options));
    return run_filled(session, graph);
}

inline void expect_same_outputs(const Graph& graph, const Ran& actual, const Ran& expected,
                                double tolerance = 1e-4) {
    ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
    for (std::size_t i = 0; i < actual.outputs.size(); ++i) {
        SCOPED_TRACE(graph.outputs[i].first);
        expect_same(graph.value(graph.outputs[i].second).type, actual.outputs[i], expected.outputs[i],
                    tolerance);
    }
}

}  // namespace headrace::testing
