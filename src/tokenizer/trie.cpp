#include "tokenizer/trie.h"

#include <algorithm>

namespace headrace::text {

Trie::Trie(std::vector<std::pair<std::string_view, std::int32_t>> entries) {
    std::ranges::stable_sort(entries, {}, &std::pair<std::string_view, std::int32_t>::first);
    /// A node's part of the entries, which agree in `depth` bytes.
    struct Part {
        std::uint32_t node;
        std::size_t begin, end, depth;
    };
    std::vector<Part> parts = {{0, 0, entries.size(), 0}};
    for (std::size_t next = 0; next < parts.size(); ++next) {
        auto [node, at, end, depth] = parts[next];
        for (; at < end && entries[at].first.size() == depth; ++at)
            if (depth > 0) nodes_[node].value = entries[at].second;
        nodes_[node].first = static_cast<std::uint32_t>(nodes_.size());
        while (at < end) {
            const char label = entries[at].first[depth];
            const std::size_t begin = at;
            while (at < end && entries[at].first[depth] == label) ++at;
            parts.push_back({static_cast<std::uint32_t>(nodes_.size()), begin, at, depth + 1});
            nodes_.push_back({.label = static_cast<unsigned char>(label)});
            ++nodes_[node].count;
        }
    }
    for (std::uint32_t i = 0; i < nodes_[0].count; ++i)
        roots_[nodes_[nodes_[0].first + i].label] = nodes_[0].first + i;
}

std::uint32_t Trie::child(std::uint32_t node, char byte) const {
    const auto label = static_cast<unsigned char>(byte);
    if (node == 0) return roots_[label];
    std::uint32_t first = nodes_[node].first, count = nodes_[node].count;
    while (count > 0) {
        const std::uint32_t half = count / 2, middle = first + half;
        if (nodes_[middle].label == label) return middle;
        if (nodes_[middle].label < label) {
            first = middle + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return 0;
}

}  // namespace headrace::text
