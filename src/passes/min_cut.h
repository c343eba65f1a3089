#pragma once
#include <cstdint>
#include <vector>

namespace headrace {

/// The cheapest way to put nodes on one of two sides, where pairs of nodes on different sides cost something:
/// a minimum cut, by Dinic's algorithm.
class MinCut {
public:
    using Node = std::int32_t;
    static constexpr Node kLeft = 0, kRight = 1;  ///< nodes that stand for the sides
    static constexpr std::int64_t kNever = std::int64_t{1} << 50;

    MinCut() : edges_of_(2) {}
    Node add_node();
    /// Costs `price` if `left` ends on the left and `right` on the right.
    void pay(Node left, Node right, std::int64_t price);
    /// Whether each node is on the right; as few as possible are.
    std::vector<bool> solve();

private:
    struct Edge {
        Node to;
        std::int64_t capacity;
    };
    bool find_levels();
    std::int64_t push(Node from, std::int64_t limit);

    std::vector<Edge> edges_;  ///< each followed by its reverse
    std::vector<std::vector<std::int32_t>> edges_of_;
    std::vector<std::int32_t> level_;
    std::vector<std::size_t> next_;
};

}  // namespace headrace
