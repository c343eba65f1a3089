#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/ops/normalization.h"
#include "doors/onnx/ops/quantization.h"

/// Embeddings of words, places and segments as ONNX Runtime's optimisers fuse them.
namespace headrace::onnx {
namespace {

struct Embedding {
    Operand table, ids;  ///< either may be null
};

/// Words, places and segments, added up.
Operand embedded(OpWriter& g, const Embedding& words, const Embedding& places, const Embedding& segments) {
    const Operand ids = checked_indices(g, words.table, as_indices(g, words.ids), {0});
    Operand total = g.op("gather", {words.table, ids}, {{"axis", 0}});
    const Shape sizes = g.shape(total);
    invalid_if(sizes.size() != 3 || g.rank(places.table) != 2,
               "the words' embeddings have {} dimensions and the table of places {}; 3 and 2 are needed",
               sizes.size(), g.rank(places.table));
    const Operand place = places.ids
                              ? g.op("gather", {places.table, as_indices(g, places.ids)}, {{"axis", 0}})
                              : g.reshape(g.cut(places.table, 0, 0, sizes[1]), {1, sizes[1], sizes[2]});
    total = g.op("add", {total, place});
    if (!segments.ids || !segments.table) return total;
    return g.op("add", {total, g.op("gather", {segments.table, as_indices(g, segments.ids)}, {{"axis", 0}})});
}

/// Null where nobody reads them.
Operand word_counts(OpWriter& g, const Node& node, const Operand& mask, const Operand& total) {
    if (!node.wants(1)) return nullptr;
    if (!mask) return g.filled(0, ElementType::i32, {g.shape(total)[0]});
    return g.op("reduce_sum", {g.cast(mask, ElementType::i32)}, {{"axes", std::vector<std::int64_t>{1}}});
}

Results embed_layer_normalization(OpWriter& g, const Node& node) {
    const Operand total = embedded(g, {node.operand(2), node.operand(0)}, {node.operand(3), node.optional(8)},
                                   {node.optional(4), node.optional(1)});
    const Operand y =
        layer_norm(g, total, node.optional(5), node.optional(6), 2, node.real("epsilon", 1e-12));
    return {y, word_counts(g, node, node.optional(7), total), total};
}

Results quantized_embed_layer_normalization(OpWriter& g, const Node& node) {
    const auto real = [&](std::size_t i) -> Operand {
        const Operand table = node.optional(2 + i);
        return table ? dequantized(g, node, table, node.operand(8 + i), node.optional(13 + i), 0) : nullptr;
    };
    const Operand words = real(0), places = real(1), segments = real(2), gamma = real(3), beta = real(4);
    invalid_if(!words || !places, "input {} is missing", words ? 3 : 2);
    const Operand total =
        embedded(g, {words, node.operand(0)}, {places, nullptr}, {segments, node.optional(1)});
    const Operand y = layer_norm(g, total, gamma, beta, 2, node.real("epsilon", 1e-12));
    return {y, word_counts(g, node, node.optional(7), total)};
}

}  // namespace

std::span<const Operator> contrib_embedding_operators() {
    static const Operator kOperators[] = {
        {"EmbedLayerNormalization", 1, embed_layer_normalization,
         "7..9 -> 1..3, epsilon float, mask_index_type int", kMicrosoft},
        {"QEmbedLayerNormalization", 1, quantized_embed_layer_normalization, "18 -> 2, epsilon float",
         kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
