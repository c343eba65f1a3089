#include "run/node_shares.h"

#include <map>
#include <numeric>

#include "ggml.h"

namespace headrace {

std::vector<std::size_t> first_readers(const LoweredGraph& lowered) {
    std::map<const ggml_tensor*, std::size_t> index;
    for (std::size_t i = 0; i < lowered.constants.size(); ++i) index[lowered.constants[i].tensor] = i;
    std::vector<std::size_t> readers(lowered.constants.size(), lowered.node_ranges.size());
    for (std::size_t node = lowered.node_ranges.size(); node-- > 0;)
        for (int n = lowered.node_ranges[node].first; n < lowered.node_ranges[node].second; ++n)
            for (const ggml_tensor* source : ggml_graph_node(lowered.graph, n)->src) {
                if (!source) continue;
                if (source->view_src) source = source->view_src;
                if (const auto it = index.find(source); it != index.end()) readers[it->second] = node;
            }
    return readers;
}

std::vector<std::uint64_t> first_read_bytes(const LoweredGraph& lowered,
                                            std::span<const std::size_t> readers) {
    std::vector<std::uint64_t> bytes(lowered.node_ranges.size());
    for (std::size_t i = 0; i < readers.size(); ++i)
        if (lowered.constants[i].on_device && readers[i] < bytes.size())
            bytes[readers[i]] += ggml_nbytes(lowered.constants[i].tensor);
    return bytes;
}

Result<std::vector<std::size_t>> share_nodes(std::span<const std::uint64_t> bytes,
                                             std::span<const std::uint64_t> rooms) {
    std::vector<std::uint64_t> left(rooms.begin(), rooms.end());
    std::vector<std::size_t> devices;
    std::size_t at = 0;
    for (const std::uint64_t needed : bytes) {
        while (at < left.size() && left[at] < needed) ++at;
        if (at == left.size())
            return failure(
                Code::out_of_memory,
                "the graph's weights take {} bytes, and {} room for {}, in one piece none of {} any more; "
                "name more hosts, or use smaller weights (q8_0, q4_0)",
                std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}),
                rooms.size() == 1 ? "the host has" : fmt::format("the {} hosts have", rooms.size()),
                std::accumulate(rooms.begin(), rooms.end(), std::uint64_t{0}), needed);
        left[at] -= needed;
        devices.push_back(at);
    }
    return devices;
}

}  // namespace headrace
