#include "doors/onnx/ops/contrib_attention.h"

#include <limits>
#include <numeric>

#include <fmt/ranges.h>

#include "doors/onnx/ops/linear_algebra.h"
#include "doors/onnx/ops/quantization.h"
#include "doors/onnx/reading/numbers.h"

/// Attention as ONNX Runtime's optimisers fuse it.
namespace headrace::onnx {
namespace {

constexpr double kMasked = -10000;

/// [1, 1, steps, past + steps]: a query sees the keys before it and its own.
Operand causal_bias(OpWriter& g, const Dim& steps, const Dim& past, ElementType type) {
    const Dim total = past + steps;
    Operand rows = g.reshape(g.positions(steps), {steps, 1});
    if (!is_same(past, 0)) rows = g.op("add", {rows, g.at_run_time(past, ElementType::i64)});
    const Operand columns = g.reshape(g.positions(total), {1, total});
    const Operand holds = g.op("lesser_or_equal", {columns, rows});
    const Operand bias = shut_where_not(g, holds, -std::numeric_limits<double>::infinity(), type);
    return g.reshape(bias, {1, 1, steps, total});
}

/// The mask as a bias, made of the sequences' lengths, or of lengths and starts.
Operand length_bias(OpWriter& g, const Operand& ends, const Dim& batch, const Dim& total, double value,
                    ElementType type) {
    const Dim count = g.shape(ends).at(0);
    const bool has_starts = !is_same(count, batch) && is_same(count, batch * 2);
    // Where the model leaves open how many there are, a run has to give one for each of the batch.
    const bool is_short =
        !has_starts && (is_same(count, batch) || count.is_symbolic() || batch.is_symbolic());
    if (!has_starts && !is_short)
        throw Refused(
            fmt::format("the mask is {} numbers for a batch of {}; lengths, or lengths and starts, are read",
                        count.str(), batch.str()),
            "Export the model with a mask of the shape [batch, keys]");
    const Operand places = g.reshape(g.positions(total), {1, 1, 1, total});
    const Shape column{batch, 1, 1, 1};
    const Operand lengths = has_starts ? g.cut(ends, 0, 0, batch) : ends;
    Operand holds = g.op("lesser", {places, g.reshape(lengths, column)});
    if (has_starts) {
        const Operand starts = g.cut(ends, 0, batch, batch);
        const Operand after = g.op("greater_or_equal", {places, g.reshape(starts, column)});
        holds = g.op("logical_and", {holds, after});
    }
    return shut_where_not(g, holds, value, type);
}

void extend(OpWriter& g, Sides& of, const Operand& past_key, const Operand& past_value) {
    if (!past_key || !past_value) return;
    of.key = g.concat({past_key, of.key}, 2);
    of.value = g.concat({past_value, of.value}, 2);
}

std::vector<std::int64_t> projection_sizes(OpWriter& g, const Node& node, const Dim& extent) {
    const std::int64_t width = g.fixed(extent, "the width of the projections");
    const auto given = node.integer_list("qkv_hidden_sizes");
    const std::vector<std::int64_t> sizes =
        given && !given->empty() ? *given : std::vector<std::int64_t>(3, width / 3);
    invalid_if(sizes.size() != 3 || std::reduce(sizes.begin(), sizes.end()) != width,
               "the projections are [{}] of a width of {}", fmt::join(sizes, ", "), width);
    return sizes;
}

Results contrib_attention(OpWriter& g, const Node& node) {
    Operand projected = matrix_product(g, node.x(), node.operand(1));
    if (node.optional(2)) projected = g.op("add", {projected, node.operand(2)});
    refuse_if(node.optional(6) != nullptr, "input 6 is given, past_sequence_length, for shared buffers");
    return self_attention(g, node, projected, node.optional(3), node.optional(4), node.optional(5));
}

/// The same with the projections of whole numbers.
Results quantized_attention(OpWriter& g, const Node& node) {
    const Operand total = exact_product(g, node.x(), node.operand(1), node.optional(6), node.optional(7));
    Operand scale = g.op("mul", {g.reshape(node.operand(3), {}), node.operand(4)});
    if (g.has_shape(scale, {1})) scale = g.reshape(scale, {});
    const Operand projected = g.op("mul", {g.cast(total, scale->type), scale});
    return self_attention(g, node, g.op("add", {projected, node.operand(2)}), node.optional(5),
                          node.optional(8), nullptr);
}

// --- MultiHeadAttention

/// [batch, steps, heads, count, width] as so many operands with their heads apart.
std::vector<Operand> unpacked_heads(OpWriter& g, const Operand& x, int count, bool in_rows) {
    const Shape s = extents_of_rank(g, x, 5, "a packed operand");
    invalid_if(!s[3].is(count), "input {} has {} operands packed, not {}", text_of(s), s[3].str(), count);
    std::vector<Operand> parts;
    for (int i = 0; i < count; ++i) {
        const Operand part = g.reshape(g.cut(x, 3, i, 1), {s[0], s[1], s[2], s[4]});
        parts.push_back(in_rows ? part : g.transpose(part, {0, 2, 1, 3}));
    }
    return parts;
}

/// The biases of queries, keys and values, which the node has behind one another; null where there is none.
std::vector<Operand> projection_biases(OpWriter& g, const Operand& bias, const Operand& query) {
    if (!bias) return std::vector<Operand>(3);
    const Dim width = extents_of_rank(g, query, 3, "the queries")[2];
    const Dim last = extents_of_rank(g, bias, 1, "the bias")[0] - width * 2;
    return {g.cut(bias, 0, 0, width), g.cut(bias, 0, width, width), g.cut(bias, 0, width * 2, last)};
}

}  // namespace

Operand sum_of_given(OpWriter& g, const Operand& a, const Operand& b) {
    if (!a || !b) return a ? a : b;
    return g.op("add", {a, b});
}

Operand key_bias(OpWriter& g, const Node& node, const Operand& mask, const Dim& batch, const Dim& total,
                 ElementType type) {
    const double value = node.real("mask_filter_value", kMasked);
    const Shape s = g.shape(mask);
    if (s.size() == 1) return length_bias(g, g.cast(mask, ElementType::i64), batch, total, value, type);
    if (s.size() != 2 && s.size() != 3)
        throw Refused(
            fmt::format("the mask has {} dimensions; lengths, masks of keys and of both sides are read",
                        s.size()),
            "Export the model with a mask of the shape [batch, keys] or [batch, queries, keys]");
    const Operand holds =
        mask->type == ElementType::boolean ? mask : g.op("not_equal", {mask, known(0, mask->type)});
    const Shape shape = s.size() == 2 ? Shape{s[0], 1, 1, s[1]} : Shape{s[0], 1, s[1], s[2]};
    return shut_where_not(g, g.reshape(holds, shape), value, type);
}

Sides multi_head_operands(OpWriter& g, const Node& node, bool in_rows) {
    const Operand query = node.x(), key = node.optional(1), value = node.optional(2), bias = node.optional(3);
    const std::int64_t heads = node.integer("num_heads", 0);
    if (g.rank(query) == 5) {
        if (bias) throw Refused("the operands are packed and have a bias", "Export the model without it");
        const std::vector<Operand> parts = unpacked_heads(g, query, 3, in_rows);
        return {parts[0], parts[1], parts[2]};
    }
    invalid_if(!key, "the keys (input 1) are missing, and the queries are not packed");
    const std::vector<Operand> biases = projection_biases(g, bias, query);
    const auto apart = [&](const Operand& x, std::size_t i) {
        return split_heads(g, sum_of_given(g, x, biases[i]), heads, in_rows);
    };
    if (g.rank(key) == 5) {
        const std::vector<Operand> parts = unpacked_heads(g, key, 2, in_rows);
        return {apart(query, 0), parts[0], parts[1]};
    }
    invalid_if(!value, "the values (input 2) are missing, and the keys are not packed");
    if (g.rank(key) == 4) return {apart(query, 0), key, value};
    return {apart(query, 0), apart(key, 1), apart(value, 2)};
}

Results multi_head_attention(OpWriter& g, const Node& node) {
    if (node.wants(3) || node.optional(8) || node.optional(9))
        throw Refused("it gives out the products (output 3), or has shared buffers or beams (inputs 8 and 9)",
                      "Export the model without these, or run it with ONNX Runtime");
    const Operand past_key = node.optional(6), past_value = node.optional(7), other = node.optional(1);
    const bool is_given = past_key || (other && g.rank(other) == 4);
    const bool in_rows = !is_given && !(node.wants(1) || node.wants(2));
    Sides of = multi_head_operands(g, node, in_rows);
    const Dim before = past_key ? extents_of_rank(g, past_key, 4, "the past keys (input 6)")[2] : Dim(0);
    extend(g, of, past_key, past_value);
    const std::size_t along = in_rows ? 1 : 2;
    const Dim batch = g.shape(of.query).at(0), total = extents_of_rank(g, of.key, 4, "the keys")[along];
    const ElementType type = of.query->type;
    Operand bias = node.optional(5);
    if (node.optional(4))
        bias = sum_of_given(g, bias, key_bias(g, node, node.operand(4), batch, total, type));
    if (node.is_one("unidirectional", false))
        bias = sum_of_given(g, bias, causal_bias(g, g.shape(of.query).at(along), before, type));
    const Operand y = attended_heads(g, node, of.query, of.key, of.value, bias, in_rows);
    return {y, node.wants(1) ? of.key : nullptr, node.wants(2) ? of.value : nullptr};
}

Operand attended_heads(OpWriter& g, const Node& node, const Operand& query, const Operand& key,
                       const Operand& value, const Operand& bias, bool in_rows) {
    NamedAttrs options{{"causal", false}, {"heads_after_rows", in_rows}};
    if (node.real("scale", 0) != 0) options.emplace_back("scale", node.real("scale", 0));
    const Operand y = g.op("scaled_dot_product_attention", {query, key, value, bias}, options);
    if (!in_rows) return joined_heads(g, y);
    const Shape s = g.shape(y);
    return g.reshape(y, {s.at(0), s.at(1), s.at(2) * s.at(3)});
}

Results self_attention(OpWriter& g, const Node& node, const Operand& projected, const Operand& mask,
                       const Operand& past, Operand bias) {
    for (const std::string_view name : {"do_rotary", "past_present_share_buffer"})
        if (node.integer(name, 0) != 0)
            throw Refused(fmt::format("{} is {}; only 0 is read", name, node.integer(name, 0)),
                          "Export the model with rotary positions as operators and without shared buffers");
    const std::int64_t heads = node.integer("num_heads", 0);
    const Shape s = extents_of_rank(g, projected, 3, "the projection");
    const std::vector<std::int64_t> sizes = projection_sizes(g, node, s[2]);
    const bool in_rows =
        !past && !node.wants(1);  // heads stay behind rows unless they are joined or given out
    const auto part = [&](std::int64_t start, std::int64_t size) {
        return split_heads(g, g.cut(projected, 2, start, size), heads, in_rows);
    };
    Sides of{part(0, sizes[0]), part(sizes[0], sizes[1]), part(sizes[0] + sizes[1], sizes[2])};
    Dim before = 0;
    if (past) {
        const Shape old = extents_of_rank(g, past, 5, "the past (input 4)"), one(old.begin() + 1, old.end());
        before = old[3];
        extend(g, of, g.reshape(g.cut(past, 0, 0, 1), one), g.reshape(g.cut(past, 0, 1, 1), one));
    }
    const ElementType type = of.query->type;
    if (mask) bias = sum_of_given(g, bias, key_bias(g, node, mask, s[0], before + s[1], type));
    if (node.is_one("unidirectional", false))
        bias = sum_of_given(g, bias, causal_bias(g, s[1], before, type));
    const Operand y = attended_heads(g, node, of.query, of.key, of.value, bias, in_rows);
    if (!node.wants(1)) return {y};
    Shape shape = g.shape(of.key);
    shape.insert(shape.begin(), 1);
    return {y, g.concat({g.reshape(of.key, shape), g.reshape(of.value, shape)}, 0)};
}

std::span<const Operator> contrib_attention_operators() {
    static const Operator kOperators[] = {
        {"Attention", 1, contrib_attention,
         "2..7 -> 1..2, do_rotary int, mask_filter_value float, num_heads int, past_present_share_buffer "
         "int, qkv_hidden_sizes ints, rotary_embedding_dim int, scale float, unidirectional int",
         kMicrosoft},
        {"MultiHeadAttention", 1, multi_head_attention,
         "1..10 -> 1..4, mask_filter_value float, num_heads int, scale float, unidirectional int",
         kMicrosoft},
        {"QAttention", 1, quantized_attention,
         "5..9 -> 1..2, do_rotary int, mask_filter_value float, num_heads int, past_present_share_buffer "
         "int, scale float, unidirectional int",
         kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
