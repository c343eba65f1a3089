#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <vector>

#include "run/instance.h"

struct ggml_tensor;

namespace headrace {

/// What ggml's scheduler tells of every node when it is asked to stop after each.
struct NodeWatch {
    using Clock = std::chrono::steady_clock;
    std::map<const ggml_tensor*, std::size_t> ir_nodes;  ///< of each ggml node, its IR node
    std::vector<NodeStats>* nodes;
    Clock::time_point begin = Clock::now(), last = begin;

    static bool after_node(ggml_tensor* tensor, bool ask, void* self) {
        if (ask) return true;  // yes, this node is of interest
        auto& watch = *static_cast<NodeWatch*>(self);
        const auto now = Clock::now();
        const auto us = [](auto d) { return std::chrono::duration<double, std::micro>(d).count(); };
        if (const auto it = watch.ir_nodes.find(tensor); it != watch.ir_nodes.end()) {
            NodeStats& node = (*watch.nodes)[it->second];
            if (node.duration_us == 0) node.start_us = us(watch.last - watch.begin);
            node.duration_us += us(now - watch.last);
        }
        watch.last = now;
        return true;  // go on
    }
};

}  // namespace headrace
