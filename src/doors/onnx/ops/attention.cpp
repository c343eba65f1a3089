#include "doors/onnx/ops/attention.h"

#include <limits>

#include "doors/onnx/reading/numbers.h"

/// Attention and rotary positions.
namespace headrace::onnx {
namespace {

constexpr double kShut = -std::numeric_limits<double>::infinity();

/// Whether there is more to it than the catalog's op does.
bool needs_parts(const Node& node) {
    const bool is_windowed =
        node.integer("left_window_size", -1) >= 0 || node.integer("right_window_size", -1) >= 0;
    const bool is_offset = node.is_one("is_causal", false) && node.optional(4);
    return node.wants(3) || node.optional(6) || node.real("softcap", 0) != 0 || is_windowed || is_offset;
}

struct AttentionOperands {
    Operand query, key, value;
};

AttentionOperands attention_operands(OpWriter& g, const Node& node, bool in_rows) {
    AttentionOperands of{node.x(), node.operand(1), node.operand(2)};
    if (g.rank(of.query) != 3) {
        for (const Operand& x : {of.query, of.key, of.value}) extents_of_rank(g, x, 4, "an operand");
    } else {
        for (const std::string_view name : {"q_num_heads", "kv_num_heads"})
            invalid_if(!node.has(name), "{} is missing, and the input has 3 dimensions", name);
        const std::int64_t heads = node.integer("q_num_heads"), groups = node.integer("kv_num_heads");
        of.query = split_heads(g, of.query, heads, in_rows);
        of.key = split_heads(g, of.key, groups, in_rows);
        of.value = split_heads(g, of.value, groups, in_rows);
    }
    if (node.optional(4)) {
        of.key = g.concat({node.operand(4), of.key}, 2);
        of.value = g.concat({node.operand(5), of.value}, 2);
    }
    return of;
}

Operand attended_by_op(OpWriter& g, const Node& node, const AttentionOperands& of, bool in_rows) {
    Operand mask = node.optional(3);
    if (mask && mask->type == ElementType::boolean) mask = shut_where_not(g, mask, kShut, of.query->type);
    if (mask) mask = g.cast(mask, of.query->type);
    NamedAttrs options{{"causal", node.is_one("is_causal", false)}, {"heads_after_rows", in_rows}};
    if (node.real("scale", 0) != 0) options.emplace_back("scale", node.real("scale", 0));
    if (mask && g.rank(mask) < 2) {
        Shape row = g.shape(mask);
        row.insert(row.begin(), 1);
        mask = g.reshape(mask, row);
    }
    return g.op("scaled_dot_product_attention", {of.query, of.key, of.value, mask}, options);
}

/// softmax(scale Q K^T + mask) V, with grouped heads and keys and values of earlier steps.
Results attention(OpWriter& g, const Node& node) {
    const bool is_flat = g.rank(node.x()) == 3, in_parts = needs_parts(node);
    // Heads stay after rows, as flat operands have them, unless they are joined or given out apart.
    const bool in_rows = is_flat && !in_parts && !node.optional(4) && !(node.wants(1) || node.wants(2));
    const AttentionOperands of = attention_operands(g, node, in_rows);
    Attended found;
    if (in_parts)
        found = attended_by_parts(g, node, of.query, of.key, of.value);
    else
        found.y = attended_by_op(g, node, of, in_rows);
    if (is_flat) {
        const Operand rows = in_rows ? found.y : g.transpose(found.y, {0, 2, 1, 3});
        const Shape s = g.shape(rows);
        found.y = g.reshape(rows, {s.at(0), s.at(1), s.at(2) * s.at(3)});
    }
    return {found.y, node.wants(1) ? of.key : nullptr, node.wants(2) ? of.value : nullptr, found.scores};
}

/// Rotates pairs of values by angles of their positions.
Operand rotary_embedding(OpWriter& g, const Node& node) {
    Operand x = node.x(), cos = node.operand(1), sin = node.operand(2), positions = node.optional(3);
    const bool is_flat = g.rank(x) == 3;
    if (is_flat) {
        invalid_if(node.integer("num_heads", 0) == 0, "num_heads is missing, and the input has 3 dimensions");
        x = split_heads(g, x, node.integer("num_heads", 0));
    }
    if (positions) {
        invalid_if(g.rank(cos) == 0, "the cosines (input 1) are a scalar");
        positions =
            checked_numbers(g, g.cast(positions, ElementType::i64), "a position", 0, g.shape(cos)[0] - 1);
        cos = g.op("gather", {cos, positions}, {{"axis", 0}});
        sin = g.op("gather", {sin, positions}, {{"axis", 0}});
    }
    const Operand y =
        rotated(g, x, cos, sin, node.is_one("interleaved", false), node.integer("rotary_embedding_dim", 0));
    return is_flat ? joined_heads(g, y) : y;
}

/// A table of cosines or sines as the catalog's op has it: every angle for both values of its pair.
Operand wide_table(OpWriter& g, const Operand& table, bool interleaved, ElementType type) {
    const Shape s = extents_of_rank(g, table, 3, "a table of angles");
    const Shape apart = interleaved ? Shape{s[0], 1, s[1], s[2], 1} : Shape{s[0], 1, s[1], s[2]};
    const Operand own = g.reshape(table, apart);
    const Operand wide = g.concat({own, own}, g.rank(own) - 1);
    return g.cast(g.reshape(wide, {s[0], 1, s[1], s[2] * 2}), type);
}

}  // namespace

Shape extents_of_rank(OpWriter& g, const Operand& x, int rank, std::string_view what) {
    const Shape s = g.shape(x);
    invalid_if(static_cast<int>(s.size()) != rank, "{} has the shape {}; it has {} dimensions", what,
               shortened_text(str(s)), rank);
    return s;
}

Operand split_heads(OpWriter& g, const Operand& x, std::int64_t heads, bool in_rows) {
    const Shape s = extents_of_rank(g, x, 3, "an operand");
    const bool is_whole = heads > 0 && (s[2].is_symbolic() || s[2].size() % heads == 0);
    invalid_if(!is_whole, "{} values do not divide into {} heads", s[2].str(), heads);
    const Operand apart = g.reshape(x, {s[0], s[1], heads, divided_down(s[2], heads)});
    return in_rows ? apart : g.transpose(apart, {0, 2, 1, 3});
}

Operand joined_heads(OpWriter& g, const Operand& y) {
    const Shape s = extents_of_rank(g, y, 4, "the result");
    return g.reshape(g.transpose(y, {0, 2, 1, 3}), {s[0], s[2], s[1] * s[3]});
}

Operand shut_where_not(OpWriter& g, const Operand& holds, double value, ElementType type) {
    return g.op("where", {holds, known(0.0, type), known(value, type)});
}

Operand rotated(OpWriter& g, const Operand& x, const Operand& cos, const Operand& sin, bool interleaved,
                const Dim& width) {
    const Dim whole = extents_of_rank(g, x, 4, "what is rotated")[3], own = width.is(0) ? whole : width;
    const Operand part = g.cut(x, 3, 0, own);
    const Operand y =
        g.op("rotary_embedding",
             {part, wide_table(g, cos, interleaved, part->type), wide_table(g, sin, interleaved, part->type)},
             {{"interleaved", interleaved}});
    return is_same(own, whole) ? y : g.concat({y, g.cut(x, 3, own, whole - own)}, 3);
}

std::span<const Operator> attention_operators() {
    static const Operator kOperators[] = {
        {"Attention", 23, attention,
         "3..6 -> 1..4, is_causal int, kv_num_heads int, q_num_heads int, qk_matmul_output_mode int, scale "
         "float, softcap float, softmax_precision int; 24: 3..7 -> 1..4, is_causal int, kv_num_heads int, "
         "q_num_heads int, qk_matmul_output_mode int, scale float, softcap float, softmax_precision int; 25: "
         "3..7 -> 1..4, is_causal int, kv_num_heads int, left_window_size int, q_num_heads int, "
         "qk_matmul_output_mode int, right_window_size int, scale float, softcap float, softmax_precision "
         "int"},
        {"RotaryEmbedding", 23, rotary_embedding,
         "3..4 -> 1, interleaved int, num_heads int, rotary_embedding_dim int"}};
    return kOperators;
}

}  // namespace headrace::onnx
