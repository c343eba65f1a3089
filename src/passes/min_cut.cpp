#include "passes/min_cut.h"

#include <algorithm>

namespace headrace {

MinCut::Node MinCut::add_node() {
    edges_of_.emplace_back();
    return static_cast<Node>(edges_of_.size()) - 1;
}

void MinCut::pay(Node left, Node right, std::int64_t price) {
    if (left == right || price <= 0) return;
    edges_of_[left].push_back(static_cast<std::int32_t>(edges_.size()));
    edges_.push_back({right, price});
    edges_of_[right].push_back(static_cast<std::int32_t>(edges_.size()));
    edges_.push_back({left, 0});
}

bool MinCut::find_levels() {
    level_.assign(edges_of_.size(), -1);
    level_[kLeft] = 0;
    std::vector<Node> queue{kLeft};
    for (std::size_t i = 0; i < queue.size(); ++i)
        for (std::int32_t e : edges_of_[queue[i]]) {
            const Edge& edge = edges_[e];
            if (edge.capacity == 0 || level_[edge.to] >= 0) continue;
            level_[edge.to] = level_[queue[i]] + 1;
            queue.push_back(edge.to);
        }
    return level_[kRight] >= 0;
}

/// Pushes flow along one path to the right side. The path is kept by hand: graphs are thousands of nodes
/// deep.
std::int64_t MinCut::push(Node from, std::int64_t limit) {
    std::vector<std::int32_t> path;
    for (Node at = from; at != kRight;) {
        std::size_t& next = next_[at];
        while (next < edges_of_[at].size()) {
            const Edge& edge = edges_[edges_of_[at][next]];
            if (edge.capacity > 0 && level_[edge.to] == level_[at] + 1) break;
            ++next;
        }
        if (next < edges_of_[at].size()) {
            path.push_back(edges_of_[at][next]);
            at = edges_[path.back()].to;
        } else {
            if (path.empty()) return 0;
            at = edges_[path.back() ^ 1].to;
            ++next_[at];
            path.pop_back();
        }
    }
    for (std::int32_t e : path) limit = std::min(limit, edges_[e].capacity);
    for (std::int32_t e : path) edges_[e].capacity -= limit, edges_[e ^ 1].capacity += limit;
    return limit;
}

std::vector<bool> MinCut::solve() {
    while (find_levels()) {
        next_.assign(edges_of_.size(), 0);
        while (push(kLeft, kNever)) continue;
    }
    // Nodes that still reach the right side belong to it.
    std::vector<bool> is_right(edges_of_.size());
    is_right[kRight] = true;
    std::vector<Node> queue{kRight};
    for (std::size_t i = 0; i < queue.size(); ++i)
        for (std::int32_t e : edges_of_[queue[i]]) {
            const Node from = edges_[e].to;
            if (is_right[from] || edges_[e ^ 1].capacity == 0) continue;
            is_right[from] = true;
            queue.push_back(from);
        }
    return is_right;
}

}  // namespace headrace
