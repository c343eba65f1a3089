#include <fmt/ranges.h>
#include <limits>

#include "doors/onnx/ops/group_query_attention.h"
#include "doors/onnx/ops/padding.h"
#include "doors/onnx/reading/numbers.h"

/// Attention with caches that are as long as they will be, into which new rows are written.
namespace headrace::onnx {
namespace {

/// For each layout which blocks of keys a block of queries sees: [layouts, blocks, blocks].
struct BlockMask {
    std::int64_t layouts = 0, blocks = 0;
    std::vector<std::int64_t> seen;  ///< 0 or 1
};

/// The mask of a matrix that is given as rows' starts [layouts, blocks + 1] and columns [layouts, n], both
/// known.
BlockMask block_mask_of(OpWriter& g, const Node& node) {
    const Operand starts = node.known_operand(5, "block_row_indices"),
                  columns = node.known_operand(6, "block_col_indices");
    const Shape s = extents_of_rank(g, starts, 2, "block_row_indices (input 5)"),
                c = extents_of_rank(g, columns, 2, "block_col_indices (input 6)");
    invalid_if(s[0] != c[0] || s[0].size() < 1 || s[1].size() < 2 || !starts->has_numbers() ||
                   !columns->has_numbers(),
               "block_row_indices and block_col_indices have the shapes {} and {}; [layouts, blocks + 1] and "
               "[layouts, n] are right",
               str(s), str(c));
    BlockMask mask{s[0].size(), s[1].size() - 1, {}};
    const Dim cells = Dim(mask.layouts) * Dim(mask.blocks) * Dim(mask.blocks);
    OpWriter::check_extent(cells.size());
    mask.seen.assign(static_cast<std::size_t>(cells.size()), 0);
    for (std::int64_t row = 0; row < mask.layouts * mask.blocks; ++row) {
        const std::int64_t layout = row / mask.blocks, at = row + layout;
        const std::int64_t first = starts->integer(at), last = starts->integer(at + 1);
        invalid_if(first < 0 || last < first || last > c[1].size(),
                   "block_row_indices (input 5) are {} and {} in layout {}, of {} columns", first, last,
                   layout, c[1].size());
        for (std::int64_t i = first; i < last; ++i) {
            const std::int64_t column = columns->integer(layout * c[1].size() + i);
            invalid_if(column < 0 || column >= mask.blocks,
                       "block_col_indices (input 6) has a block {} of {} in layout {}", column, mask.blocks,
                       layout);
            mask.seen[static_cast<std::size_t>(row * mask.blocks + column)] = 1;
        }
    }
    return mask;
}

/// The cache with the new rows at each sequence's places.
Operand written_cache(OpWriter& g, const Operand& cache, const Operand& rows, const Operand& places) {
    const Shape s = g.shape(rows);
    const Operand at = g.expand(g.reshape(places, {s.at(0), 1, s.at(2), 1}), s);
    return g.op("scatter_elements", {cache, at, rows}, {{"axis", 2}});
}

/// [batch, heads, steps, total]: which keys a query sees, as an addend. Heads have the layouts in turn.
Operand chosen_keys(OpWriter& g, const BlockMask& mask, const Operand& places, std::int64_t block,
                    std::int64_t heads, const Dim& total, ElementType type) {
    const Shape s = g.shape(places);
    const auto block_of = [&](const Operand& of) {
        const Operand number = g.op("div", {of, known(block, ElementType::i64)});
        return g.op("min", {number, known(mask.blocks - 1, ElementType::i64)});
    };
    const Operand table =
        g.reshape(known(mask.seen, ElementType::boolean), {mask.layouts, mask.blocks, mask.blocks});
    const Operand keys = g.positions(total);
    Operand seen = g.op("gather", {table, block_of(keys)}, {{"axis", 2}});
    seen = g.op("gather", {seen, block_of(places)}, {{"axis", 1}});  // [layouts, batch, steps, total]
    seen = g.transpose(seen, {1, 0, 2, 3});
    const Operand rows = g.reshape(places, {s.at(0), 1, s.at(1), 1});
    const Operand before = g.op("lesser_or_equal", {g.reshape(keys, {1, 1, 1, total}), rows});
    const Operand bias = shut_where_not(g, g.op("logical_and", {seen, before}),
                                        -std::numeric_limits<double>::infinity(), type);
    if (mask.layouts == 1 || mask.layouts == heads) return bias;
    const std::vector<Operand> turns(static_cast<std::size_t>(heads / mask.layouts), bias);
    return g.concat(turns, 1);
}

/// As GroupQueryAttention, of chosen blocks of keys (arXiv:2404.14219).
Results sparse_attention(OpWriter& g, const Node& node) {
    const std::int64_t heads = node.integer("num_heads"), groups = node.integer("kv_num_heads"),
                       block = node.integer("sparse_block_size");
    std::vector<Operand> of = grouped_operands(g, node, heads, groups);
    invalid_if(heads % groups != 0, "num_heads is {} and kv_num_heads {}, into which it does not divide",
               heads, groups);
    invalid_if(block < 1, "sparse_block_size is {}; at least 1", block);
    const BlockMask mask = block_mask_of(g, node);
    invalid_if(heads % mask.layouts != 0, "num_heads is {}, into which {} layouts do not divide", heads,
               mask.layouts);
    const ElementType number = ElementType::i64;
    const Shape s = g.shape(of[0]),
                past = extents_of_rank(g, node.operand(3), 4, "the cache of keys (input 3)");
    const Operand lengths = g.reshape(g.cast(node.operand(8), number), {s.at(0)});
    const Dim most = past[2] - 1;
    const Operand places = checked_numbers(g, places_of_steps(g, lengths, s[0], s.at(2)),
                                           "a place in the caches (inputs 3 and 4)", 0, most);
    if (node.flag("do_rotary", false)) turn_by_places(g, node, of, places, 9);
    of[1] = written_cache(g, node.operand(3), of[1], places);
    of[2] = written_cache(g, node.operand(4), of[2], places);
    const Operand bias = chosen_keys(g, mask, places, block, heads, past[2], of[0]->type);
    return {attended_heads(g, node, of[0], of[1], of[2], bias), of[1], of[2]};
}

// --- one step of a decoder

/// Addends of the keys so far, with nothing for the cache's other places.
Operand with_rest_of_cache(OpWriter& g, const Operand& bias, const Dim& total) {
    const Shape s = extents_of_rank(g, bias, 4, "an addend of the scores");
    const Dim missing = total - s[3];
    return is_same(missing, 0) ? bias : with_margin(g, bias, {0, 0, 0, 0}, {0, 0, 0, missing});
}

/// A step that attends to what the caches have up to its own place.
Results step_in_caches(OpWriter& g, const Node& node, const Sides& of) {
    const ElementType number = ElementType::i64, type = of.query->type;
    const Shape s = g.shape(of.query);
    invalid_if(!s.at(2).is(1), "the queries have {} steps; one is right", s.at(2).str());
    const Dim total = extents_of_rank(g, node.operand(5), 4, "the cache of keys (input 5)")[2];
    const Operand past =
        checked_numbers(g, g.cast(node.operand(7), number), "past_sequence_length (input 7)", 0, total - 1);
    const Operand places = g.expand(g.reshape(past, {1, 1}), {s.at(0), 1});
    const Operand key = written_cache(g, node.operand(5), of.key, places),
                  value = written_cache(g, node.operand(6), of.value, places);
    const Operand keys = g.reshape(g.positions(total), {1, 1, 1, total});
    Operand bias = shut_where_not(g, g.op("lesser_or_equal", {keys, g.reshape(past, {1, 1, 1, 1})}),
                                  -std::numeric_limits<double>::infinity(), type);
    if (const Operand mask = node.optional(3)) {
        const Dim known = extents_of_rank(g, mask, 2, "the mask (input 3)")[1];
        const Operand masked = key_bias(g, node, mask, s.at(0), known, type);
        bias = g.op("add", {bias, with_rest_of_cache(g, masked, total)});
    }
    if (node.optional(4)) bias = g.op("add", {bias, with_rest_of_cache(g, node.operand(4), total)});
    return {attended_heads(g, node, of.query, key, value, bias), key, value};
}

/// As MultiHeadAttention, with other places for the same inputs.
Results masked_step_attention(OpWriter& g, const Node& node) {
    if (node.optional(9) || node.wants(3))
        throw Refused("its caches are of beams (cache_indirection), or it gives out the products (output 3)",
                      "Export the decoder without beams, or run it with ONNX Runtime");
    Node plain = node;
    plain.inputs = {node.x(),         node.optional(1), node.optional(2), node.optional(10),
                    node.optional(3), node.optional(4), node.optional(5), node.optional(6)};
    if (!node.flag("past_present_share_buffer", false)) return multi_head_attention(g, plain);
    return step_in_caches(g, node, multi_head_operands(g, plain, false));
}

}  // namespace

std::span<const Operator> shared_caches_operators() {
    static const Operator kOperators[] = {
        {"DecoderMaskedMultiHeadAttention", 1, masked_step_attention,
         "1..11 -> 1..4, mask_filter_value float, num_heads int, output_qk int, past_present_share_buffer "
         "int, scale float",
         kMicrosoft},
        {"SparseAttention", 1, sparse_attention,
         "9..11 -> 3, do_rotary int, kv_num_heads int, num_heads int, rotary_interleaved int, scale float, "
         "sparse_block_size int",
         kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
