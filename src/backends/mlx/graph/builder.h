#pragma once
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/memory/leaf.h"
#include "backends/mlx/memory/quant_format.h"
#include "ggml.h"

namespace headrace::mlx {

/// A quantised matrix in the arrays of MLX's quantised products; biases where the format has_biases().
struct PackedArrays {
    const QuantFormat* format;
    array codes, scales;
    std::optional<array> biases;
};

/// Builds one lazy MLX expression from the nodes of a ggml graph, in their order. Nothing is computed here.
///
/// ggml's memory has a history: a node's value is an array of its own, but memory from outside the graph (a
/// KV cache) is written in place, so each write makes a new version of the root that later readers depend on.
class Builder {
public:
    /// `host` is where what touches ggml's memory runs; the stream of the rest is MLX's default.
    explicit Builder(mx::Stream host) : host_(host) {}
    mx::Stream host() const { return host_; }

    /// Roots that the graph writes in place: who reads them is remembered, to be finished before the write.
    void expect_write(const ggml_tensor* root) { written_.insert(root); }

    /// The tensor's value, of shape_of(t) and its own dtype; f32 for quantised types.
    array get(const ggml_tensor* t);
    array f32(const ggml_tensor* t);
    /// As f32(), from the cache of converted weights where they have a place in it.
    array weight(const ggml_tensor* t);
    /// Only for tensors whose memory is repacked.
    PackedArrays packed(const ggml_tensor* t);
    /// Rows [begin, end) of a repacked matrix as f32, of two axes.
    array converted_rows(const ggml_tensor* t, int begin, int end);

    /// Makes `value` what the node t is; it may have another dtype, and any shape with as many elements.
    void define(const ggml_tensor* t, array value);
    /// SET_ROWS: puts rows of values where `numbers` says in the node's memory.
    void write_rows(const ggml_tensor* t, array values, array numbers);
    /// CPY from one tensor of blocks to another: bit by bit.
    void copy_blocks(const ggml_tensor* t);
    /// Gives an array to a tensor that has no memory: an operand of the C++ API.
    void bind(const ggml_tensor* t, array value) { values_.insert_or_assign(t, std::move(value)); }

    /// The node's current value, for those defined in this graph.
    const array* find(const ggml_tensor* root) const;
    /// The tensor can be read later as well as now: no node has changed it in place, or will its memory.
    bool is_constant(const ggml_tensor* t) const;
    const std::unordered_map<const ggml_tensor*, array>& versions() const { return versions_; }
    const std::vector<std::pair<Leaf, array>>& leaves() const { return leaves_; }

private:
    array leaf(const ggml_tensor* t, LeafKind kind);
    array root_memory(const ggml_tensor* root);
    array converted(const ggml_tensor* t);
    array part_of_version(const ggml_tensor* t, LeafKind part);
    void store_in_value(const ggml_tensor* t, array& root_value, array value);
    void write(const ggml_tensor* t, std::vector<array> inputs, bool by_rows);
    void note_readers(const ggml_tensor* t, const array& value);

    mx::Stream host_;
    std::unordered_map<const ggml_tensor*, array> values_, versions_, in_f32_;
    std::unordered_map<const ggml_tensor*, std::vector<array>> readers_;
    std::unordered_set<const ggml_tensor*> written_, changed_;
    std::vector<std::pair<Leaf, array>> leaves_;
};

/// A node's value with its axes as its memory has them: some ops of ggml's lay their result out permuted.
array in_memory_order(const array& value, const ggml_tensor* t);
/// Places `part` into the flat array at a position described by a ggml view's shape and strides, in elements.
array update_region(const array& flat, const array& part, const Shape& shape, const Strides& strides,
                    std::int64_t offset);

}  // namespace headrace::mlx
