#include <algorithm>
#include <array>

#include "doors/onnx/ops/attention.h"
#include "doors/onnx/ops/few_bits.h"

/// Layers of experts, of which a router chooses a few for each token.
///
/// All experts are computed for all tokens, in two products: their matrices lie behind one another, and the
/// weight of an expert that was not chosen is 0.
namespace headrace::onnx {
namespace {

struct Sizes {
    Dim tokens;
    std::int64_t experts, hidden, inner;
};

/// The matrix of all experts, [outputs, inputs], and each one's bias, [experts, outputs], which may be null.
struct Layer {
    Operand matrix, bias;
};

/// `third` is null where there is none, or within `first`.
struct Layers {
    Layer first, second, third;
};

bool is_swiglu(const Node& node) { return node.text("activation_type", "relu") == "swiglu"; }

/// The extents of weights [experts, outputs, inputs], counted in numbers where they lie in bytes.
Sizes sizes_of(OpWriter& g, const Node& node, const Operand& first, const Operand& second,
               std::int64_t first_bits, std::int64_t second_bits, bool has_third) {
    const Shape a = extents_of_rank(g, first, 3, "fc1_experts_weights"),
                b = extents_of_rank(g, second, 3, "fc2_experts_weights");
    Sizes s{1, g.fixed(a[0], "the number of experts"), g.fixed(a[2] * (8 / first_bits), "the width"),
            g.fixed(b[2] * (8 / second_bits), "the inner width")};
    const bool is_fused = is_swiglu(node) && !has_third;
    const std::int64_t outputs = is_fused ? 2 * s.inner : s.inner;
    invalid_if(std::min({s.experts, s.hidden, s.inner}) < 1,
               "there are {} experts of {} and {} values; each must be at least 1", s.experts, s.hidden,
               s.inner);
    invalid_if(!is_same(a[1], outputs) || !is_same(b[0], s.experts) || !is_same(b[1], s.hidden),
               "fc1_experts_weights are {} and fc2_experts_weights {}, which do not fit", str(a), str(b));
    const Shape x = g.shape(node.x());
    invalid_if(x.size() < 2 || x.size() > 3 || !is_same(x.back(), s.hidden),
               "the input is {}; the experts are of {} values", str(x), s.hidden);
    for (std::size_t i = 0; i + 1 < x.size(); ++i) s.tokens = s.tokens * x[i];
    return s;
}

/// [tokens, experts]: the weights of the chosen ones, and 0.
///
/// router_weights: what the chosen ones weigh, where it is not their scores.
Operand weights_of_experts(OpWriter& g, const Node& node, const Sizes& s, const Operand& router_weights,
                           bool is_of_chosen) {
    const std::int64_t k = node.integer("k", 1);
    invalid_if(k < 1 || k > s.experts, "k is {}; there are {} experts", k, s.experts);
    refuse_if(node.flag("use_sparse_mixer", false), "use_sparse_mixer is 1; only 0 is read");
    const Shape all{s.tokens, s.experts};
    const NamedAttrs along{{"axis", 1}};
    const auto as_scores = [&](const Operand& x) { return g.reshape(g.cast(x, ElementType::f32), all); };
    const Operand scores = as_scores(node.operand(1));
    const auto chosen = g.ops("sort", {scores}, {{"axis", 1}, {"descending", true}, {"count", k}});
    Operand weights;
    if (router_weights) {
        weights = g.op("gather_elements", {as_scores(router_weights), chosen[1]}, along);
        const std::vector<std::int64_t> axes{1};
        if (is_of_chosen)
            weights = g.op(
                "div", {weights, g.op("reduce_sum", {weights}, {{"axes", axes}, {"keep_dimensions", true}})});
    } else if (is_of_chosen) {
        weights = g.op("softmax", {chosen[0]}, along);
    } else {
        weights = g.op("gather_elements", {g.op("softmax", {scores}, along), chosen[1]}, along);
    }
    return g.op("scatter_elements", {g.filled(0, ElementType::f32, all), chosen[1], weights}, along);
}

// --- what experts do between their products

/// gate sigmoid(alpha gate) (linear + beta), both within a limit.
Operand gated_by_swiglu(OpWriter& g, const Node& node, Operand gate, Operand linear) {
    if (node.has("swiglu_limit")) {
        const double limit = node.real("swiglu_limit", 0);
        invalid_if(!(limit >= 0), "swiglu_limit is {}; at least 0", limit);
        gate = g.op("clamp", {gate}, {{"max_value", limit}});
        linear = g.op("clamp", {linear}, {{"min_value", -limit}, {"max_value", limit}});
    }
    const NamedAttrs by_sigmoid{{"activation", "sigmoid"}};
    gate = g.op("glu", {g.times(gate, node.real("activation_alpha", 1)), gate}, by_sigmoid);
    return g.op("mul", {gate, g.plus(linear, node.real("activation_beta", 0))});
}

/// Both halves of [tokens, experts, 2 inner].
Operand fused_swiglu(OpWriter& g, const Node& node, const Sizes& s, const Operand& both) {
    const std::int64_t fusion = node.integer("swiglu_fusion", 0);
    invalid_if(fusion != 1 && fusion != 2,
               "swiglu_fusion is {} without fc3_experts_weights; 1 and 2 have them in fc1_experts_weights",
               fusion);
    if (fusion == 2)
        return gated_by_swiglu(g, node, g.cut(both, 2, 0, s.inner), g.cut(both, 2, s.inner, s.inner));
    return gated_by_swiglu(g, node, g.cut(both, 2, 0, 2 * s.inner - 1, 2),
                           g.cut(both, 2, 1, 2 * s.inner - 1, 2));
}

Operand activated(OpWriter& g, const Node& node, const Operand& x) {
    const std::string name = node.text("activation_type", "relu");
    if (name == "identity") return x;
    constexpr std::array<std::string_view, 3> kPlain{"relu", "silu", "gelu"};
    invalid_if(std::ranges::find(kPlain, name) == kPlain.end(), "activation_type is '{}'; {} are there", name,
               "relu, gelu, silu, swiglu and identity");
    return g.op(name == "gelu" ? "gelu_tanh" : name, {x});
}

/// [tokens, experts, width]
Operand product_of_experts(OpWriter& g, const Sizes& s, const Operand& x, const Layer& layer) {
    const Operand bias = layer.bias ? g.reshape(layer.bias, {g.size(layer.bias)}) : nullptr;
    const Operand y = g.op("fused_matmul", {x, layer.matrix, bias}, {{"transpose_b", true}});
    return g.reshape(y, {s.tokens, s.experts, divided_down(g.shape(y).at(1), s.experts)});
}

Operand mixed(OpWriter& g, const Node& node, const Sizes& s, const Operand& weights, const Layers& of) {
    const Operand x = g.reshape(g.cast(node.x(), ElementType::f32), {s.tokens, s.hidden});
    Operand inner = product_of_experts(g, s, x, of.first);
    if (of.third.matrix) {
        const Operand linear = product_of_experts(g, s, x, of.third);
        inner = is_swiglu(node) ? gated_by_swiglu(g, node, inner, linear)
                                : g.op("mul", {activated(g, node, inner), linear});
    } else {
        inner = is_swiglu(node) ? fused_swiglu(g, node, s, inner) : activated(g, node, inner);
    }
    inner = g.op("mul", {inner, g.reshape(weights, {s.tokens, s.experts, 1})});
    const Operand rows = g.reshape(inner, {s.tokens, s.experts * s.inner});
    Operand y = g.op("fused_matmul", {rows, of.second.matrix}, {{"transpose_b", true}});
    if (of.second.bias) y = g.op("add", {y, g.op("matmul", {weights, of.second.bias})});
    return g.cast(g.reshape(y, g.shape(node.x())), node.x()->type);
}

/// An optional input of so many numbers, f32.
Operand reals_of(OpWriter& g, const Node& node, std::size_t index, const Shape& sizes) {
    const Operand x = node.optional(index);
    if (!x) return nullptr;
    invalid_if(!g.has_shape(x, sizes), "input {} is {}; it must be {}", index, str(g.shape(x)), str(sizes));
    return g.cast(x, ElementType::f32);
}

// --- of real numbers

Operand mixture_of_experts(OpWriter& g, const Node& node) {
    const Operand third = node.optional(6);
    const Sizes s =
        sizes_of(g, node, node.operand(2), node.operand(4), /*first_bits=*/8, /*second_bits=*/8, !!third);
    const Dim outputs = g.shape(node.operand(2)).at(1);
    const Operand weights =
        weights_of_experts(g, node, s, nullptr, node.flag("normalize_routing_weights", false));
    const auto all_rows = [&](const Operand& x) {
        return g.reshape(g.cast(x, ElementType::f32), {g.shape(x).at(1) * s.experts, s.hidden});
    };
    Layers of;
    of.first = {all_rows(node.operand(2)), reals_of(g, node, 3, {s.experts, outputs})};
    const Operand second = g.transpose(g.cast(node.operand(4), ElementType::f32), {1, 0, 2});
    of.second = {g.reshape(second, {s.hidden, s.experts * s.inner}),
                 reals_of(g, node, 5, {s.experts, s.hidden})};
    if (third) {
        const Shape wanted{s.experts, s.inner, s.hidden};
        invalid_if(!g.has_shape(third, wanted), "fc3_experts_weights are {}; they must be {}",
                   str(g.shape(third)), str(wanted));
        of.third = {all_rows(third), reals_of(g, node, 7, {s.experts, s.inner})};
    }
    return mixed(g, node, s, weights, of);
}

// --- of few bits

/// Which inputs a layer of QMoE is, and how its numbers lie in bytes.
struct Packed {
    std::size_t weights, scales, bias, zeros;
    std::int64_t bits, outputs, inputs, blocks;
};

Operand known_bytes(const Node& node, std::size_t index, std::int64_t count) {
    Operand x = node.known_operand(index, "what experts have in few bits");
    invalid_if(!x->has_numbers() || x->type != ElementType::u8 || x->known->count() != count,
               "input {} is {} numbers of {}; it must be {} of u8", index, x->known->count(),
               name_of(x->type), count);
    return x;
}

/// Zero points in bytes: of whole columns a row for each expert, of blocks one for each output.
std::vector<std::uint8_t> zero_points(const Node& node, const Sizes& s, const Packed& p) {
    const auto count = static_cast<std::size_t>(s.experts * p.outputs * p.blocks);
    std::vector<std::uint8_t> zeros(count, static_cast<std::uint8_t>(1 << (p.bits - 1)));
    if (!node.optional(p.zeros)) return zeros;
    const bool has_blocks = node.integer("block_size", 0) > 0;
    const std::int64_t rows = has_blocks ? s.experts * p.outputs : s.experts,
                       width = has_blocks ? p.blocks : p.outputs, row_bytes = (width * p.bits + 7) / 8;
    const Operand given = known_bytes(node, p.zeros, rows * row_bytes);
    for (std::int64_t i = 0; i < rows * width; ++i) {
        const std::byte* row = given->known->data->bytes.data() + i / width * row_bytes;
        zeros[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(bits_at(row, i % width, p.bits));
    }
    return zeros;
}

/// Where each row of the whole matrix is: all experts' rows behind one another, or of each output those of
/// all experts.
std::vector<std::int64_t> order_of_rows(const Sizes& s, const Packed& p, bool by_outputs) {
    std::vector<std::int64_t> order = own_order(s.experts * p.outputs);
    if (!by_outputs) return order;
    for (std::int64_t i = 0; i < s.experts * p.outputs; ++i)
        order[static_cast<std::size_t>(i)] = i % s.experts * p.outputs + i / s.experts;
    return order;
}

/// Scaled by each block of a row. by_outputs: as [outputs, experts inputs], else [experts outputs, inputs].
Layer packed_layer(OpWriter& g, const Node& node, const Sizes& s, Packed p, bool by_outputs) {
    const std::int64_t given = node.integer("block_size", 0), block = given > 0 ? given : p.inputs;
    invalid_if(p.inputs % block != 0 || p.inputs * p.bits % 8 != 0,
               "block_size is {}, and a row has {} numbers of {} bits", given, p.inputs, p.bits);
    p.blocks = p.inputs / block;
    const std::vector<std::int64_t> order = order_of_rows(s, p, by_outputs);
    const std::int64_t rows = s.experts * p.outputs;
    const Operand packed = known_bytes(node, p.weights, p.inputs * p.bits / 8 * rows);
    const Operand scales = g.cast(node.operand(p.scales), ElementType::f32);
    const Shape wanted = given > 0 ? Shape{s.experts, p.outputs, p.blocks} : Shape{s.experts, p.outputs};
    invalid_if(!g.has_shape(scales, wanted), "the scales (input {}) are {}; they must be {}", p.scales,
               str(g.shape(scales)), str(wanted));
    Operand own = g.reshape(scales, {s.experts, p.outputs, p.blocks});
    const std::vector<std::uint8_t> zeros = zero_points(node, s, p);
    std::vector<std::uint8_t> own_zeros;
    for (const std::int64_t row : order)
        for (std::int64_t i = 0; i < p.blocks; ++i)
            own_zeros.push_back(zeros[static_cast<std::size_t>(row * p.blocks + i)]);
    if (by_outputs) own = g.transpose(own, {1, 0, 2});
    const std::int64_t each = by_outputs ? s.experts : 1, whole = rows / each;
    const Operand codes = codes_of_rows(g, packed, order, p.inputs, p.bits);
    const Operand matrix =
        g.op("dequantize_linear",
             {g.reshape(codes, {whole, each * p.inputs}), g.reshape(own, {whole, each * p.blocks}),
              known_codes(whole, each * p.blocks, p.bits, own_zeros)});
    return {matrix, reals_of(g, node, p.bias, {s.experts, p.outputs})};
}

std::int64_t bits_of(const Node& node, std::string_view layer) {
    const std::string name = fmt::format("{}_expert_weight_bits", layer);
    const std::int64_t bits = node.integer(name, node.integer("expert_weight_bits", 4));
    check_bits(bits, node.has(name) ? name : "expert_weight_bits");
    return bits;
}

Operand quantized_mixture_of_experts(OpWriter& g, const Node& node) {
    const std::string type = node.text("quant_type", "int");
    if (type != "int" || node.integer("weights_prepacked", -1) == 1)
        throw Refused(fmt::format("quant_type is '{}' and weights_prepacked {}; whole numbers as they are "
                                  "quantised are read",
                                  type, node.integer("weights_prepacked", -1)),
                      "Quantise the experts to integers of 2, 4 or 8 bits, not packed for a device");
    const std::int64_t first_bits = bits_of(node, "fc1"), second_bits = bits_of(node, "fc2");
    const bool has_third = node.optional(8) != nullptr;
    const Sizes s = sizes_of(g, node, node.operand(2), node.operand(5), first_bits, second_bits, has_third);
    const std::int64_t outputs = g.fixed(g.shape(node.operand(2)).at(1), "the width of an expert");
    const Operand router_weights = node.optional(14);
    const Operand weights = weights_of_experts(
        g, node, s, router_weights, !router_weights || node.flag("normalize_routing_weights", false));
    Layers of;
    of.first = packed_layer(g, node, s, {2, 3, 4, 11, first_bits, outputs, s.hidden, 0}, false);
    of.second = packed_layer(g, node, s, {5, 6, 7, 12, second_bits, s.hidden, s.inner, 0}, true);
    if (has_third)
        of.third =
            packed_layer(g, node, s, {8, 9, 10, 13, bits_of(node, "fc3"), s.inner, s.hidden, 0}, false);
    return mixed(g, node, s, weights, of);
}

}  // namespace

std::span<const Operator> mixture_of_experts_operators() {
    static const Operator kOperators[] = {
        {"MoE", 1, mixture_of_experts,
         "5..8 -> 1, activation_alpha float, activation_beta float, activation_type string, k int, "
         "normalize_routing_weights int, swiglu_fusion int, swiglu_limit float, use_sparse_mixer int",
         kMicrosoft},
        {"QMoE", 1, quantized_mixture_of_experts,
         "6..21 -> 1, accuracy_level int, activation_alpha float, activation_beta float, activation_type "
         "string, block_size int, expert_weight_bits int, fc1_expert_weight_bits int, "
         "fc2_expert_weight_bits int, fc3_expert_weight_bits int, k int, normalize_routing_weights int, "
         "quant_type string, swiglu_fusion int, swiglu_limit float, use_sparse_mixer int, "
         "weights_prepacked int",
         kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
