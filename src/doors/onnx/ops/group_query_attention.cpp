#include "doors/onnx/ops/group_query_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "doors/onnx/ops/contrib_attention.h"
#include "doors/onnx/reading/numbers.h"

/// Attention and rotary positions as ONNX Runtime's model builders write them.
namespace headrace::onnx {
namespace {

void check_group_query(const Node& node) {
    const bool is_plain =
        node.text("k_quant_type", "NONE") == "NONE" && node.text("v_quant_type", "NONE") == "NONE";
    if (!is_plain || node.flag("sliding_window_cache", false) || node.wants(3))
        throw Refused(
            "its cache is quantised or slides (k_quant_type, sliding_window_cache), or it gives out the "
            "products "
            "(output 3)",
            "Export the model with a cache of floats as long as the sequence, or run it with ONNX Runtime");
    for (const std::size_t weight : {14, 15})
        refuse_if(node.optional(weight) != nullptr, "input {} is given, a norm of the operands", weight);
}

/// The cache, in its own dtype, with the new rows behind each sequence's own.
Operand extended_cache(OpWriter& g, const Operand& past, const Operand& given, const Operand& places) {
    if (!past) return given;
    const Operand rows = g.cast(given, past->type);
    const Operand longer = g.concat({past, rows}, 2);
    const Shape s = g.shape(rows);
    if (is_same(s.at(0), 1)) return longer;
    const Operand at = g.expand(g.reshape(places, {s.at(0), 1, s.at(2), 1}), s);
    return g.op("scatter_elements", {longer, at, rows}, {{"axis", 2}});
}

/// [batch, 1, steps, total]: which keys a query sees, as an addend.
Operand visible_keys(OpWriter& g, const Node& node, const Operand& places, const Operand& lengths,
                     const Dim& total, ElementType type) {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    const Shape s = g.shape(places);
    const Operand keys = g.reshape(g.positions(total), {1, 1, 1, total});
    if (!node.flag("causal", true))
        return shut_where_not(g, g.op("lesser", {keys, g.reshape(lengths, {s.at(0), 1, 1, 1})}), kNever,
                              type);
    const Operand rows = g.reshape(places, {s.at(0), 1, s.at(1), 1});
    Operand holds = g.op("lesser_or_equal", {keys, rows});
    const std::int64_t window = node.integer("local_window_size", -1);
    if (window > 0) {
        const Operand near = g.op("greater", {keys, g.plus(rows, Item(-window))});
        holds = g.op("logical_and", {holds, near});
    }
    return shut_where_not(g, holds, kNever, type);
}

/// Weights of the keys, with a score of nothing beside theirs.
Operand weights_beside_nothing(OpWriter& g, const Operand& scores, const Operand& given) {
    const Shape s = g.shape(scores);
    const Operand sink = given ? g.cast(given, scores->type) : g.filled(0, scores->type, {s.at(1)});
    const Operand column = g.expand(g.reshape(sink, {1, s.at(1), 1, 1}), {s.at(0), s.at(1), s.at(2), 1});
    const Operand weights = g.op("softmax", {g.concat({column, scores}, 3)}, {{"axis", 3}});
    return g.cut(weights, 3, 1, s.at(3));
}

/// With scores that are capped, or with a score of nothing beside those of the keys.
Operand grouped_by_parts(OpWriter& g, const Node& node, const std::vector<Operand>& of, const Operand& bias) {
    const Shape q = g.shape(of[0]), k = extents_of_rank(g, of[1], 4, "the keys");
    const Dim rows = divided_down(q.at(1), k[1]) * q.at(2);
    const double given = node.real("scale", 0), cap = node.real("softcap", 0);
    const double scale =
        given != 0 ? given : 1 / std::sqrt(static_cast<double>(g.fixed(q.at(3), "the width of a head")));
    const Operand turned = g.transpose(of[1], {0, 1, 3, 2});
    Operand scores = g.times(g.op("matmul", {g.reshape(of[0], {q[0], k[1], rows, q[3]}), turned}), scale);
    if (cap != 0) scores = g.times(g.op("tanh", {g.times(scores, 1 / cap)}), cap);
    scores = g.op("add", {g.reshape(scores, {q[0], q[1], q[2], k[2]}), bias});
    const bool has_nothing = node.flag("smooth_softmax", false) || node.optional(11);
    const Operand weights = has_nothing ? weights_beside_nothing(g, scores, node.optional(11))
                                        : g.op("softmax", {scores}, {{"axis", 3}});
    const Operand y = g.op("matmul", {g.reshape(weights, {q[0], k[1], rows, k[2]}), of[2]});
    return g.reshape(y, {q[0], q[1], q[2], g.shape(of[2]).at(3)});
}

/// Queries of a head and its group's keys; new keys and values go behind those of earlier steps.
Results group_query_attention(OpWriter& g, const Node& node) {
    check_group_query(node);
    const std::int64_t heads = node.integer("num_heads", 0), groups = node.integer("kv_num_heads", 0);
    std::vector<Operand> of = grouped_operands(g, node, heads, groups);
    invalid_if(heads % groups != 0, "num_heads is {} and kv_num_heads {}, into which it does not divide",
               heads, groups);
    const Dim batch = g.shape(of[0]).at(0), steps = g.shape(of[0]).at(2);
    const ElementType number = ElementType::i64, type = of[0]->type;
    const Operand lengths = g.plus(g.reshape(g.cast(node.operand(5), number), {batch}), Item(1));
    const Operand places = places_of_steps(g, lengths, batch, steps);
    if (node.flag("do_rotary", false))
        turn_by_places(g, node, of, node.optional(9) ? g.cast(node.operand(9), number) : places, 7);
    const Operand keys = extended_cache(g, node.optional(3), of[1], places);
    const Operand values = extended_cache(g, node.optional(4), of[2], places);
    of[1] = g.cast(keys, type);
    of[2] = g.cast(values, type);
    Operand bias = visible_keys(g, node, places, lengths, g.shape(of[1]).at(2), type);
    bias = sum_of_given(g, bias, node.optional(10));
    const bool in_parts =
        node.real("softcap", 0) != 0 || node.flag("smooth_softmax", false) || node.optional(11);
    const Operand y = in_parts ? joined_heads(g, grouped_by_parts(g, node, of, bias))
                               : attended_heads(g, node, of[0], of[1], of[2], bias);
    Results results{y, keys, values};
    results.resize(std::clamp<std::size_t>(node.outputs.size(), 1, results.size()));
    return results;
}

/// By the width of what is rotated, where the node does not say it.
std::int64_t heads_of_rotation(OpWriter& g, const Node& node, const Operand& x, const Operand& cos) {
    if (const std::int64_t given = node.integer("num_heads", 0); given != 0) return given;
    const std::int64_t whole = g.fixed(g.shape(x).at(2), "the width");
    const Shape table = extents_of_rank(g, cos, 2, "the cosines (input 2)");
    const std::int64_t angles = g.fixed(table[1], "the number of angles");
    invalid_if(angles < 1, "the tables (inputs 2 and 3) have {} angles; at least 1", angles);
    return whole / (2 * angles);
}

/// The positions come second; one position is the first of a row of them.
Operand contrib_rotary_embedding(OpWriter& g, const Node& node) {
    Operand x = node.x(), positions = g.cast(node.operand(1), ElementType::i64);
    const Operand cos = node.operand(2), sin = node.operand(3);
    refuse_if(node.flag("is_packed_batching", false),
              "is_packed_batching is 1; only 0 is read, sequences side by side");
    const bool is_flat = g.rank(x) == 3;
    if (is_flat) x = split_heads(g, x, heads_of_rotation(g, node, x, cos));
    const Shape s = extents_of_rank(g, x, 4, "the input");
    if (g.rank(positions) == 1)
        positions = g.op("add", {g.reshape(positions, {1, 1}), g.reshape(g.positions(s[2]), {1, s[2]})});
    const Dim last = extents_of_rank(g, cos, 2, "the cosines (input 2)")[0] - 1;
    positions = g.expand(checked_numbers(g, positions, "a position", 0, last), {s[0], s[2]});
    const Operand own_cos = g.op("gather", {cos, positions}, {{"axis", 0}});
    const Operand own_sin = g.op("gather", {sin, positions}, {{"axis", 0}});
    Operand y = rotated(g, x, own_cos, own_sin, node.flag("interleaved", false),
                        node.integer("rotary_embedding_dim", 0));
    y = g.times(y, node.real("scale", 1));
    return is_flat ? joined_heads(g, y) : y;
}

/// Which of the three positions, of time, height and width, each angle is of.
std::vector<std::int64_t> positions_of_angles(const Node& node, std::int64_t angles) {
    const auto sections = node.integer_list("mrope_section").value_or(std::vector<std::int64_t>());
    const bool is_right = sections.size() == 3 && std::ranges::all_of(sections, [&](std::int64_t n) {
                              return n >= 0 && n <= angles;
                          });
    invalid_if(!is_right || sections[0] + sections[1] + sections[2] != angles,
               "mrope_section is [{}]; it must be three numbers of which {} are the sum",
               fmt::join(sections, ", "), angles);
    const std::int64_t layout = node.integer("mrope_layout", 0);
    invalid_if(layout != 0 && layout != 1, "mrope_layout is {}; 0 and 1 are there", layout);
    std::vector<std::int64_t> which(static_cast<std::size_t>(angles));
    for (std::int64_t i = 0; i < angles; ++i) {
        std::int64_t& own = which[static_cast<std::size_t>(i)];
        if (layout == 0)
            own = (i >= sections[0] ? 1 : 0) + (i >= sections[0] + sections[1] ? 1 : 0);
        else if (const std::int64_t turn = i % 3; turn != 0)
            own = i < sections[static_cast<std::size_t>(turn)] * 3 ? turn : 0;
    }
    return which;
}

/// A table's angles at three positions each, [3, batch, steps, angles], as [batch, steps, angles]: of each
/// angle that at its own position.
Operand own_angles(OpWriter& g, const Operand& table, const Operand& positions,
                   const std::vector<std::int64_t>& which) {
    const Operand all = g.op("gather", {table, positions}, {{"axis", 0}});
    const Operand last = g.transpose(all, {1, 2, 3, 0});
    const Shape s = g.shape(last);
    const auto angles = static_cast<std::int64_t>(which.size());
    const Operand places = g.expand(g.reshape(known(which), {1, 1, angles, 1}), {s[0], s[1], angles, 1});
    return g.reshape(g.op("gather_elements", {last, places}, {{"axis", 3}}), {s[0], s[1], angles});
}

/// As RotaryEmbedding, by three positions of each token.
Operand contrib_mrotary_embedding(OpWriter& g, const Node& node) {
    Operand x = node.x();
    const Operand cos = node.operand(2), sin = node.operand(3);
    refuse_if(node.flag("is_packed_batching", false),
              "is_packed_batching is 1; only 0 is read, sequences side by side");
    const bool is_flat = g.rank(x) == 3;
    if (is_flat) x = split_heads(g, x, heads_of_rotation(g, node, x, cos));
    const Shape s = extents_of_rank(g, x, 4, "the input"),
                table = extents_of_rank(g, cos, 2, "the cosines (input 2)");
    const Operand positions =
        g.expand(checked_numbers(g, g.cast(node.operand(1), ElementType::i64), "a position", 0, table[0] - 1),
                 {3, s[0], s[2]});
    const std::int64_t angles = g.fixed(table[1], "the number of angles");
    OpWriter::check_extent(angles);
    const auto which = positions_of_angles(node, angles);
    Operand y = rotated(g, x, own_angles(g, cos, positions, which), own_angles(g, sin, positions, which),
                        node.flag("interleaved", false), node.integer("rotary_embedding_dim", 0));
    y = g.times(y, node.real("scale", 1));
    return is_flat ? joined_heads(g, y) : y;
}

}  // namespace

std::vector<Operand> grouped_operands(OpWriter& g, const Node& node, std::int64_t heads,
                                      std::int64_t groups) {
    if (node.optional(1))
        return {split_heads(g, node.x(), heads), split_heads(g, node.operand(1), groups),
                split_heads(g, node.operand(2), groups)};
    const Shape s = extents_of_rank(g, node.x(), 3, "the packed operand");
    const std::int64_t width = g.fixed(s[2], "the width of the operands");
    invalid_if(heads < 1 || groups < 1 || heads > width || groups > width || heads + 2 * groups > width,
               "num_heads is {} and kv_num_heads {}, for a width of {}", heads, groups, width);
    const std::int64_t each = width / (heads + 2 * groups);
    const auto part = [&](std::int64_t start, std::int64_t n) {
        return split_heads(g, g.cut(node.x(), 2, start * each, n * each), n);
    };
    return {part(0, heads), part(heads, groups), part(heads + groups, groups)};
}

void turn_by_places(OpWriter& g, const Node& node, std::vector<Operand>& of, const Operand& places,
                    std::size_t tables) {
    const Shape s = g.shape(of[0]);
    const Operand turned = g.expand(places, {s.at(0), s.at(2)});
    const Operand cos = g.op("gather", {node.operand(tables), turned}, {{"axis", 0}});
    const Operand sin = g.op("gather", {node.operand(tables + 1), turned}, {{"axis", 0}});
    const Dim width = extents_of_rank(g, cos, 3, "the cosines of the places")[2] * 2;
    for (const std::size_t i : {0, 1})
        of[i] = rotated(g, of[i], cos, sin, node.flag("rotary_interleaved", false), width);
}

Operand places_of_steps(OpWriter& g, const Operand& lengths, const Dim& batch, const Dim& steps) {
    const ElementType number = ElementType::i64;
    const Operand before =
        g.op("max", {g.op("sub", {lengths, g.at_run_time(steps, number)}), known(0, number)});
    return g.op("add", {g.reshape(before, {batch, 1}), g.reshape(g.positions(steps), {1, steps})});
}

std::span<const Operator> group_query_attention_operators() {
    static const Operator kOperators[] = {
        {"GroupQueryAttention", 1, group_query_attention,
         "7..16 -> 1..4, causal int, do_rotary int, k_quant_type string, kv_cache_bit_width int, "
         "kv_num_heads int, local_window_size int, num_heads int, qk_norm_epsilon float, qk_output int, "
         "rotary_interleaved int, scale float, sliding_window_cache int, smooth_softmax int, softcap float, "
         "v_quant_type string",
         kMicrosoft},
        {"MRotaryEmbedding", 1, contrib_mrotary_embedding,
         "4 -> 1, interleaved int, is_packed_batching int, mrope_layout int, mrope_section ints, num_heads "
         "int, rotary_embedding_dim int, scale float",
         kMicrosoft},
        {"RotaryEmbedding", 1, contrib_rotary_embedding,
         "4 -> 1, interleaved int, is_packed_batching int, num_heads int, rotary_embedding_dim int, scale "
         "float",
         kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
