#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace headrace::text {

/// Finds which of many texts a text begins with.
class Trie {
public:
    struct Match {
        std::int32_t value = -1;  ///< -1: none
        std::size_t size = 0;     ///< bytes
    };

    Trie() = default;
    /// values: not negative. The last of equal texts counts. Empty texts are left out.
    explicit Trie(std::vector<std::pair<std::string_view, std::int32_t>> entries);

    /// Calls use(value, bytes) for each, the shortest first.
    template <class Use>
    void each_prefix(std::string_view text, const Use& use) const {
        std::uint32_t node = 0;
        for (std::size_t i = 0; i < text.size() && (node = child(node, text[i])) != 0; ++i)
            if (nodes_[node].value >= 0) use(nodes_[node].value, i + 1);
    }
    Match longest(std::string_view text) const {
        Match best;
        each_prefix(text, [&](std::int32_t value, std::size_t size) { best = {value, size}; });
        return best;
    }
    bool empty() const { return nodes_.size() < 2; }

private:
    struct Node {
        std::uint32_t first = 0;  ///< of its children, which lie one after the other, sorted by label
        std::int32_t value = -1;
        std::uint16_t count = 0;
        unsigned char label = 0;
    };
    /// 0, the root, where there is none.
    std::uint32_t child(std::uint32_t node, char byte) const;

    std::vector<Node> nodes_ = std::vector<Node>(1);
    std::vector<std::uint32_t> roots_ = std::vector<std::uint32_t>(256);  ///< children of the root
};

}  // namespace headrace::text
