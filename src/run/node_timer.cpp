#include "run/node_timer.h"

#include <chrono>

#include "ggml-cpu.h"
#include "ggml.h"

namespace headrace {

NodeTimer::NodeTimer(const LoweredGraph& lowered) {
    std::size_t bytes = 0;
    for (const auto& [first, last] : lowered.node_ranges)
        bytes += ggml_tensor_overhead() +
                 ggml_graph_overhead_custom(static_cast<std::size_t>(last - first) + 1, false);
    context_.reset(ggml_init({.mem_size = bytes + ggml_tensor_overhead(), .no_alloc = true}));
    for (const auto& [first, last] : lowered.node_ranges) {
        if (first == last) {
            parts_.push_back(nullptr);
            continue;
        }
        parts_.push_back(
            ggml_new_graph_custom(context_.get(), static_cast<std::size_t>(last - first), false));
        for (int n = first; n < last; ++n)
            ggml_graph_add_node(parts_.back(), ggml_graph_node(lowered.graph, n));
    }
}

int NodeTimer::compute(int threads, ggml_threadpool* pool, std::uint8_t* work,
                       std::vector<NodeStats>& nodes) const {
    using Clock = std::chrono::steady_clock;
    using Microseconds = std::chrono::duration<double, std::micro>;
    nodes.resize(parts_.size(), {.device = "CPU"});
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const auto start = Clock::now();
        if (parts_[i]) {
            ggml_cplan plan = ggml_graph_plan(parts_[i], threads, pool);
            plan.work_data = work;
            if (const ggml_status status = ggml_graph_compute(parts_[i], &plan);
                status != GGML_STATUS_SUCCESS)
                return status;
        }
        nodes[i].start_us = Microseconds(start - begin).count();
        nodes[i].duration_us = Microseconds(Clock::now() - start).count();
    }
    return GGML_STATUS_SUCCESS;
}

}  // namespace headrace
