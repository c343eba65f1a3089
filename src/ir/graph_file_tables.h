#pragma once
#include <flatbuffers/flatbuffers.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph_file.h"

/// The FlatBuffer inside a graph file; graph_file.cpp alone uses it.
namespace headrace::detail {

inline constexpr std::size_t kWeightAlignment = 64;
/// FlatBuffers' offsets are signed 32-bit in places; its builder and verifier assert a smaller size.
inline constexpr std::size_t kMostTableBytes = 0x7FFF0000;

constexpr std::uint64_t align_weight(std::uint64_t offset) {
    return (offset + kWeightAlignment - 1) / kWeightAlignment * kWeightAlignment;
}

/// A graph without its weights, and the constants in the order in which they follow it.
struct EncodedGraph {
    struct Weight {
        std::uint64_t offset;  ///< from the start of the weights
        const Constant* constant;
    };
    flatbuffers::DetachedBuffer tables;
    std::vector<Weight> weights;
};

/// The graph must pass verify(). by_key: constants that have a key are named instead of listed.
Result<EncodedGraph> encode_graph(const Graph& graph, bool by_key);

/// Where a file's weights are, for the constants to point into.
struct WeightBytes {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
    bool mapped = false;
    const FindWeight* find = nullptr;  ///< for constants outside the file
};

/// Trusts nothing in `tables`, which must be 8-byte aligned. The result passes verify().
Result<Graph> decode_graph(std::span<const std::byte> tables, const WeightBytes& weights,
                           const OpLookup& find_op);

}  // namespace headrace::detail
