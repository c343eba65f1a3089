#include "doors/onnx/ops/convolution.h"
#include "doors/onnx/ops/normalization.h"
#include "doors/onnx/reading/numbers.h"

/// Parts of gated layers, ONNX's and ONNX Runtime's: what they define by other operators.
namespace headrace::onnx {
namespace {

/// A sigmoid(alpha A) times B
Operand swiglu(OpWriter& g, const Node& node) {
    const Operand a = node.x();
    const double alpha = node.real("alpha", 1);
    const Operand gate = g.op("glu", {g.times(a, alpha), a}, {{"activation", "sigmoid"}});
    return g.op("mul", {gate, node.operand(1)});
}

/// Convolves each channel by itself over this and earlier positions of x [batch, channels, positions]; the
/// last ones are given on.
Results convolved_with_past(OpWriter& g, const Node& node, const Operand& x, const Operand& given) {
    const Operand weight = node.operand(1);
    const Shape shape = g.shape(x), filter = g.shape(weight);
    invalid_if(shape.size() != 3 || filter.size() != 3,
               "the input and the filter have {} and {} dimensions, not 3", shape.size(), filter.size());
    const std::int64_t dilation = node.integer("dilation", 1);
    invalid_if(dilation < 1, "dilation is {}; at least 1", dilation);
    const std::int64_t taps = g.fixed(filter[2], "the length of the filter");
    const std::int64_t channels = g.fixed(shape[1], "the number of channels");
    invalid_if(taps < 1, "the filter (input 1) has no elements");
    const Dim kept = Dim(taps - 1) * dilation;
    OpWriter::check_extent(kept.size());
    const std::string activation = node.text("activation", "none");
    invalid_if(activation != "none" && activation != "silu" && activation != "swish",
               "activation is '{}'; none, silu and swish are ONNX's", activation);
    const Operand past = given ? given : g.filled(0, x->type, {shape[0], shape[1], kept});
    const Operand whole = kept.is(0) ? x : g.concat({past, x}, 2);
    Window window{{filter[2]}, {1}, {dilation}, {0}, {0}};
    const Operand y = convolve(g, whole, weight, node.optional(2), window, channels);
    const Operand present = g.cut(whole, 2, g.shape(whole)[2] - kept, kept);
    return {activation == "none" ? y : g.op("silu", {y}), present};
}

Results causal_convolution(OpWriter& g, const Node& node) {
    return convolved_with_past(g, node, node.x(), node.optional(3));
}

// --- ONNX Runtime's

/// [batch, positions, ...] as [batch, channels, positions].
Operand with_positions_last(OpWriter& g, const Operand& x) {
    const Shape s = g.shape(x);
    invalid_if(s.size() < 3, "an operand has {} dimensions; 3 are the least with channels_last", s.size());
    const Dim channels = product_of(Shape(s.begin() + 2, s.end()));
    return g.transpose(g.reshape(x, {s[0], s[1], channels}), {0, 2, 1});
}

Results contrib_causal_convolution(OpWriter& g, const Node& node) {
    for (const auto& [name, read] :
         {std::pair<std::string_view, std::int64_t>("ndim", 1), {"state_window", 0}})
        refuse_if(node.integer(name, read) != read, "{} is {}; only {} is read", name,
                  node.integer(name, read), read);
    if (!node.flag("channels_last", false)) return causal_convolution(g, node);
    const Operand past = node.optional(3);
    Results found = convolved_with_past(g, node, with_positions_last(g, node.x()),
                                        past ? with_positions_last(g, past) : nullptr);
    for (Operand& y : found) {
        Shape sizes = g.shape(node.x());
        sizes[1] = g.shape(y).at(2);
        y = g.reshape(g.transpose(y, {0, 2, 1}), sizes);
    }
    return found;
}

Operand gated_add(OpWriter& g, const Node& node) {
    return g.op("add", {node.x(), g.op("mul", {node.operand(1), node.operand(2)})});
}

/// The last axis as so many parts, which are a new last axis.
Operand in_parts(OpWriter& g, const Operand& x, std::int64_t width, std::string_view what) {
    Shape sizes = g.shape(x);
    invalid_if(sizes.empty(), "the input is a scalar, which has no last axis");
    const std::int64_t whole = g.fixed(sizes.back(), "the last axis");
    invalid_if(width < 1 || whole % width != 0, "the last axis of {} is no multiple of {}, {}", whole, width,
               what);
    sizes.back() = whole / width;
    sizes.emplace_back(width);
    return g.reshape(x, sizes);
}

/// Each part of the last axis that is as long as the scale, times the activation of a gate.
Operand gated_rms_norm(OpWriter& g, const Node& node) {
    const Operand x = node.x(), scale = node.operand(1), gate = g.cast(node.operand(2), ElementType::f32);
    const std::string activation = node.text("activation", "silu");
    const bool is_silu = activation == "silu" || activation == "swish";
    invalid_if(!is_silu && activation != "sigmoid", "activation is '{}'; silu, swish and sigmoid are there",
               activation);
    invalid_if(g.rank(scale) != 1, "the scale (input 1) has {} dimensions, not 1", g.rank(scale));
    const std::int64_t width = g.fixed(g.shape(scale)[0], "the length of the scale");
    const Operand parts = in_parts(g, g.cast(x, ElementType::f32), width, "the length of the scale");
    const Operand scaled =
        rms_norm(g, parts, g.cast(scale, ElementType::f32), g.rank(parts) - 1, node.real("epsilon", 1e-5));
    const NamedAttrs activated{{"activation", is_silu ? "silu" : "sigmoid"}};
    return g.cast(g.op("glu", {gate, g.reshape(scaled, g.shape(x))}, activated), x->type);
}

/// Each branch by itself: the last axis, or with num_branches so many parts of it.
Operand branchwise_rms_norm(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::int64_t branches = node.integer("num_branches", 0);
    invalid_if(g.rank(x) == 0, "the input is a scalar, which has no last axis");
    Operand parts = g.cast(x, ElementType::f32);
    if (branches > 0) {
        const std::int64_t whole = g.fixed(g.shape(x).back(), "the last axis");
        invalid_if(whole % branches != 0, "the last axis of {} is no multiple of num_branches, {}", whole,
                   branches);
        parts = in_parts(g, parts, whole / branches, "the width of a branch");
    }
    const double epsilon = node.real("epsilon", 1e-5);
    Operand y;
    if (!node.optional(1)) {
        y = g.op("rms_norm", {parts}, {{"dimensions", 1}, {"epsilon", epsilon}});
    } else {
        Operand scale = g.cast(node.operand(1), ElementType::f32);
        const Shape sizes = g.shape(parts), own = g.shape(scale);
        if (own.size() == 1 && own[0] != sizes.back())
            scale =
                in_parts(g, scale, g.fixed(sizes.back(), "the width of a branch"), "the width of a branch");
        y = rms_norm(g, parts, scale, g.rank(parts) - 1, epsilon);
    }
    return g.cast(g.reshape(y, g.shape(x)), x->type);
}

/// How much of a linear attention's state is kept, and how much of what is new enters.
Results linear_attention_gate(OpWriter& g, const Node& node) {
    const Operand a = node.x();
    const Operand sum = g.op("add", {g.cast(a, ElementType::f32), node.operand(1)});
    const Operand decay = g.op("mul", {g.op("softplus", {sum}), node.operand(2)});
    Results results{g.cast(decay, a->type)};
    if (node.optional(3)) results.push_back(g.op("sigmoid", {node.operand(3)}));
    return results;
}

// --- ONNX Runtime's streams side by side (arXiv:2409.19606)

/// [..., branches, width], which may lie flat with num_branches.
Operand grouped_streams(OpWriter& g, const Node& node) {
    const Operand x = g.cast(node.x(), ElementType::f32);
    const std::int64_t branches = node.integer("num_branches", 0);
    invalid_if(g.rank(x) < (branches > 0 ? 1 : 2), "the streams have {} dimensions, too few for branches",
               g.rank(x));
    if (branches <= 0) return x;
    const std::int64_t whole = g.fixed(g.shape(x).back(), "the last axis");
    invalid_if(whole % branches != 0, "the last axis of {} is no multiple of num_branches, {}", whole,
               branches);
    return in_parts(g, x, whole / branches, "the width of a branch");
}

/// Gates of branches, or of their elements, as they broadcast to the streams.
Operand gates_of_streams(OpWriter& g, const Operand& given, const Operand& streams) {
    const Operand gates = g.cast(given, ElementType::f32);
    const int rank = g.rank(streams);
    if (g.rank(gates) == rank) return gates;
    invalid_if(g.rank(gates) != rank - 1, "the gates have {} dimensions for {} of the streams", g.rank(gates),
               rank);
    const Dim branches = g.shape(streams).at(static_cast<std::size_t>(rank - 2));
    if (is_same(g.shape(gates).back(), branches)) return g.add_axes(gates, 1);
    return g.reshape(gates, g.shape(streams));
}

/// The streams' sum by gates.
Operand hyper_connection_pre_mix(OpWriter& g, const Node& node) {
    const Operand streams = grouped_streams(g, node);
    const Operand gated = g.op("mul", {streams, gates_of_streams(g, node.operand(1), streams)});
    const Operand sum = g.op("reduce_sum", {gated}, {{"axes", std::vector<std::int64_t>{g.rank(gated) - 2}}});
    return g.cast(g.times(sum, node.real("reduction_scale", 1)), node.x()->type);
}

/// Streams that are mixed, and a block's result added to each by its gates.
Operand hyper_connection_post_mix(OpWriter& g, const Node& node) {
    const Operand streams = grouped_streams(g, node);
    Operand block = g.cast(node.operand(1), ElementType::f32), mixed = streams;
    const int rank = g.rank(streams);
    invalid_if(g.rank(block) != rank - 1, "the block's output has {} dimensions for {} of the streams",
               g.rank(block), rank);
    Shape sizes = g.shape(block);
    sizes.insert(sizes.end() - 1, 1);
    block = g.reshape(block, sizes);
    if (node.optional(3)) {
        const Operand mix = g.cast(node.operand(3), ElementType::f32);
        invalid_if(g.rank(mix) != rank, "the stream's mix has {} dimensions for {} of the streams",
                   g.rank(mix), rank);
        std::vector<std::int64_t> order = counted_list(rank);
        std::swap(order[order.size() - 1], order[order.size() - 2]);
        mixed = g.op("matmul", {g.transpose(mix, order), streams});
    }
    const Operand added = g.op("mul", {gates_of_streams(g, node.operand(2), streams), block});
    return g.cast(g.reshape(g.op("add", {mixed, added}), g.shape(node.x())), node.x()->type);
}

/// A value of all streams by the likeness of their keys and queries; and normalised, where that is wanted.
Results engram_gate(OpWriter& g, const Node& node) {
    const auto real = [&](std::size_t i) { return g.cast(node.operand(i), ElementType::f32); };
    const Operand key = real(0), query = real(1), value = real(2);
    invalid_if(g.rank(key) != 4 || g.rank(query) != 4 || g.rank(value) != 3,
               "keys, queries and values have {}, {} and {} dimensions, not 4, 4 and 3", g.rank(key),
               g.rank(query), g.rank(value));
    const double epsilon = node.real("epsilon", 1e-5);
    const Shape s = g.shape(key), v = g.shape(value);
    const Operand likeness =
        g.op("mul", {rms_norm(g, key, real(3), 3, epsilon), rms_norm(g, query, real(4), 3, epsilon)});
    const NamedAttrs last{{"axes", std::vector<std::int64_t>{3}}, {"keep_dimensions", true}};
    const Operand root = g.op("sqrt", {g.at_run_time(s[3], ElementType::f32)});
    const Operand dot = g.op("div", {g.op("reduce_sum", {likeness}, last), root});
    const Operand size = g.op("max", {g.op("abs", {dot}), known(1e-6, ElementType::f32)});
    const Operand gate = g.op("sigmoid", {g.op("mul", {g.op("sign", {dot}), g.op("sqrt", {size})})});
    const Operand y = g.op("mul", {gate, g.reshape(value, {v[0], v[1], 1, v[2]})});
    Results results{g.cast(y, node.x()->type)};
    if (node.wants(1)) results.push_back(g.cast(rms_norm(g, y, real(5), 3, epsilon), node.x()->type));
    return results;
}

}  // namespace

std::span<const Operator> gated_operators() {
    static const Operator kOperators[] = {
        {"BranchwiseRMSNorm", 1, branchwise_rms_norm, "1..2 -> 1, epsilon float, num_branches int",
         kMicrosoft},
        {"CausalConvWithState", 27, causal_convolution, "2..4 -> 2, activation string"},
        {"CausalConvWithState", 1, contrib_causal_convolution,
         "2..4 -> 2, activation string, channels_last int, dilation int, ndim int, state_window int",
         kMicrosoft},
        {"EngramGate", 1, engram_gate, "5..6 -> 1..2, epsilon float", kMicrosoft},
        {"GatedAdd", 1, gated_add, "3 -> 1", kMicrosoft},
        {"GatedRMSNorm", 1, gated_rms_norm, "3 -> 1, activation string, epsilon float", kMicrosoft},
        {"HyperConnectionPostMix", 1, hyper_connection_post_mix, "3..4 -> 1, num_branches int", kMicrosoft},
        {"HyperConnectionPreMix", 1, hyper_connection_pre_mix,
         "2 -> 1, num_branches int, reduction_scale float", kMicrosoft},
        {"LinearAttentionGate", 1, linear_attention_gate, "3..4 -> 1..2", kMicrosoft},
        {"SwiGLU", 28, swiglu, "2 -> 1, alpha float"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
