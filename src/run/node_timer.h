#pragma once
#include <cstdint>
#include <vector>

#include "headrace/headrace.h"
#include "lower/lower.h"

struct ggml_threadpool;

namespace headrace {

/// A lowered graph cut at its IR nodes, so that each can be run on the CPU and timed by itself.
class NodeTimer {
public:
    explicit NodeTimer(const LoweredGraph& lowered);
    /// Runs all nodes in their order and notes the times. `work` is as large as the whole graph's plan asks.
    /// Returns ggml's status.
    int compute(int threads, ggml_threadpool* pool, std::uint8_t* work, std::vector<NodeStats>& nodes) const;

private:
    GgmlContext context_;
    std::vector<ggml_cgraph*> parts_;  ///< of each IR node; null where it became no ggml node
};

}  // namespace headrace
