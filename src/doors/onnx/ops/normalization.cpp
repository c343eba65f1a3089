#include "doors/onnx/ops/normalization.h"

#include <algorithm>

#include "doors/onnx/reading/numbers.h"

/// Normalisation by batch statistics, layers, instances, groups, norms and neighbours.
namespace headrace::onnx {
namespace {

constexpr double kEpsilon = 1e-5;

/// [1, channels, 1, ...]
Shape channel_column(const Shape& shape) {
    Shape column(shape.size(), 1);
    column.at(1) = shape.at(1);
    return column;
}

/// By the batch's own statistics, and the given ones moved towards them.
Results by_batch(OpWriter& g, const Node& node, const Operand& x, const std::vector<Operand>& parameters) {
    if (node.opset < 14 && (node.wants(3) || node.wants(4)))
        throw Refused(
            "outputs 3 and 4 are wanted, the batch's statistics, which only operator sets before 14 give "
            "out",
            "Export the model for inference");
    invalid_if(g.rank(x) < 2, "the input has {} dimensions; 2 are the least", g.rank(x));
    const Shape column = channel_column(g.shape(x));
    std::vector<std::int64_t> axes = counted_list(g.rank(x));
    axes.erase(axes.begin() + 1);
    const NamedAttrs over{{"axes", axes}, {"keep_dimensions", true}};
    const Operand own = g.op("reduce_mean", {x}, over), apart = g.op("sub", {x, own});
    const Operand spread = g.op("reduce_mean", {g.op("mul", {apart, apart})}, over);
    Operand y = g.op("div", {apart, g.op("sqrt", {g.plus(spread, node.real("epsilon", kEpsilon))})});
    y = g.op("add", {g.op("mul", {y, g.reshape(parameters[0], column)}), g.reshape(parameters[1], column)});
    const double momentum = node.real("momentum", 0.9);
    Results results{y};
    for (const auto& [old, now] : {std::pair(parameters[2], own), std::pair(parameters[3], spread)})
        results.push_back(
            g.op("add", {g.times(old, momentum), g.times(g.reshape(now, g.shape(old)), 1 - momentum)}));
    results.resize(std::min(results.size(), std::max<std::size_t>(node.outputs.size(), 1)));
    return results;
}

Results batch_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    refuse_if(!node.flag("spatial", true),
              "spatial is 0, statistics for every element; only 1 is read, statistics for every channel");
    std::vector<Operand> parameters;  // scale, bias, mean, variance
    for (std::size_t i = 1; i < 5; ++i) parameters.push_back(g.cast(node.operand(i), x->type));
    bool is_training = node.is_one("training_mode", false);
    if (node.opset < 14) is_training = node.wants(1) || node.wants(2) || node.wants(3) || node.wants(4);
    if (is_training) return by_batch(g, node, x, parameters);
    return {g.op("batch_normalization", {x, parameters[2], parameters[3], parameters[0], parameters[1]},
                 {{"axis", g.rank(x) > 1 ? 1 : 0}, {"epsilon", node.real("epsilon", kEpsilon)}})};
}

Operand instance_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const Shape shape = g.shape(x);
    invalid_if(shape.size() < 3, "the input has {} dimensions; 3 are the least", shape.size());
    const Dim inner = product_of(std::span(shape).subspan(2));
    const Operand image = shape.size() == 4 ? x : g.reshape(x, {shape[0], shape[1], 1, inner});
    const Operand y = g.op("instance_normalization", {image, node.operand(1), node.operand(2)},
                           {{"epsilon", node.real("epsilon", kEpsilon)}});
    return g.reshape(y, shape);
}

Results layer_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const int axis = g.axis(x, node.integer("axis", -1));
    const double epsilon = node.real("epsilon", kEpsilon);
    const Operand y = layer_norm(g, x, node.operand(1), node.optional(2), axis, epsilon);
    if (!node.wants(1) && !node.wants(2)) return {y};
    std::vector<std::int64_t> axes = counted_list(g.rank(x));
    axes.erase(axes.begin(), axes.begin() + axis);
    const Operand stash = node.integer("stash_type", 1) == 1 ? g.cast(x, ElementType::f32) : x;
    const Normalized found = normalized(g, stash, axes, epsilon);
    return {y, found.mean, found.inverse};
}

Operand rms_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    if (node.wants(1))
        throw Refused("output 1 is wanted, the inverse deviation, which is not given out",
                      "Export the model for inference, without this output");
    const int axis = g.axis(x, node.integer("axis", -1));
    return rms_norm(g, x, node.operand(1), axis, node.real("epsilon", kEpsilon));
}

Operand group_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const Shape shape = g.shape(x);
    const std::int64_t groups = node.integer("num_groups");
    invalid_if(shape.size() < 2, "the input has {} dimensions; 2 are the least", shape.size());
    const Dim channels = shape[1];
    invalid_if(groups < 1 || (!channels.is_symbolic() && channels.size() % groups != 0),
               "num_groups is {}, into which {} channels do not divide", groups, channels.str());
    const Dim inner = product_of(std::span(shape).subspan(2)) * divided_down(channels, groups);
    Operand y = g.op("layer_normalization", {g.reshape(x, {shape[0], groups, inner})},
                     {{"axes", std::vector<std::int64_t>{2}}, {"epsilon", node.real("epsilon", kEpsilon)}});
    const auto column = [&](std::size_t i) {
        return g.add_axes(g.reshape(node.operand(i), {channels}),
                          static_cast<std::int64_t>(shape.size()) - 2);
    };
    y = g.op("mul", {g.reshape(y, shape), column(1)});
    return g.op("add", {y, column(2)});
}

/// x divided by its norm; where that is 0 the result is 0.
Operand lp_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x(), zero = known(0, x->type);
    const std::int64_t p = node.integer("p", 2);
    invalid_if(p != 1 && p != 2, "p is {}; 1 or 2", p);
    const std::vector<std::int64_t> axes{g.axis(x, node.integer("axis", -1))};
    const Operand norm =
        g.op(p == 1 ? "reduce_l1" : "reduce_l2", {x}, {{"axes", axes}, {"keep_dimensions", true}});
    return g.op("div", {x, g.op("where", {g.op("equal", {norm, zero}), known(1, x->type), norm})});
}

Operand mean_variance_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const bool has_axes = node.opset >= 9;
    std::vector<std::int64_t> given{0, 2, 3};
    if (!has_axes && node.flag("across_channels", false)) given = {0, 1, 2, 3};
    std::vector<std::int64_t> axes;
    for (std::int64_t axis : node.integer_list("axes").value_or(given)) axes.push_back(g.axis(x, axis));
    const NamedAttrs over{{"axes", axes}, {"keep_dimensions", true}};
    // Squared afterwards: means of large squares would cancel.
    const Operand apart = g.op("sub", {x, g.op("reduce_mean", {x}, over)});
    if (!has_axes && !node.flag("normalize_variance", true)) return apart;
    const Operand deviation = g.op("sqrt", {g.op("reduce_mean", {g.op("mul", {apart, apart})}, over)});
    return g.op("div", {apart, g.plus(deviation, 1e-9)});
}

/// x / (bias + alpha / size * the squares of the channels around it) ^ beta
Operand local_response_normalization(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const std::int64_t size = node.integer("size");
    invalid_if(size < 1, "size is {}; at least 1", size);
    const Shape shape = g.shape(x);
    invalid_if(shape.size() < 2, "the input has {} dimensions; 2 are the least", shape.size());
    Operand squares =
        g.reshape(g.op("mul", {x, x}), {shape[0], 1, shape[1], product_of(std::span(shape).subspan(2))});
    const std::int64_t before = (size - 1) / 2;
    squares = g.op("pad", {squares},
                   {{"mode", "constant"},
                    {"value", 0.0},
                    {"beginning_padding", Shape{0, 0, before, 0}},
                    {"ending_padding", Shape{0, 0, size - 1 - before, 0}}});
    const Operand means =
        g.op("average_pool2d", {squares}, {{"window_dimensions", std::vector<std::int64_t>{size, 1}}});
    const Operand base =
        g.plus(g.times(g.reshape(means, shape), node.real("alpha", 1e-4)), node.real("bias", 1));
    return g.op("div", {x, g.op("pow", {base, known(node.real("beta", 0.75), x->type)})});
}

}  // namespace

Normalized normalized(OpWriter& g, const Operand& x, const std::vector<std::int64_t>& axes, double epsilon) {
    const NamedAttrs over{{"axes", axes}, {"keep_dimensions", true}};
    const Operand mean = g.op("reduce_mean", {x}, over), apart = g.op("sub", {x, mean});
    const Operand variance = g.op("reduce_mean", {g.op("mul", {apart, apart})}, over);
    const Operand inverse = g.op("reciprocal", {g.op("sqrt", {g.plus(variance, epsilon)})});
    return {g.op("mul", {apart, inverse}), mean, inverse};
}

Operand layer_norm(OpWriter& g, const Operand& x, const Operand& scale, const Operand& bias, int axis,
                   double epsilon) {
    invalid_if(axis < 0 || axis > g.rank(x), "the input has {} dimensions, and no axis {}", g.rank(x), axis);
    std::vector<std::int64_t> axes = counted_list(g.rank(x));
    axes.erase(axes.begin(), axes.begin() + axis);
    const Shape whole = g.shape(x), inner(whole.begin() + axis, whole.end());
    const NamedAttrs options{{"axes", axes}, {"epsilon", epsilon}};
    if (scale && scale->type != x->type) {  // before operator set 17; the result has the scale's dtype
        const bool is_double = x->type == ElementType::f64 || scale->type == ElementType::f64;
        const Operand wide = g.cast(x, is_double ? ElementType::f64 : ElementType::f32);
        const Operand y = g.cast(g.op("layer_normalization", {wide}, options), scale->type);
        const Operand scaled = g.op("mul", {y, scale});
        return bias ? g.op("add", {scaled, bias}) : scaled;
    }
    const bool fits = (!scale || g.has_shape(scale, inner)) && (!bias || g.has_shape(bias, inner));
    if (fits) return g.op("layer_normalization", {x, scale, bias}, options);
    Operand y = g.op("layer_normalization", {x}, options);
    if (scale) y = g.op("mul", {y, scale});
    return bias ? g.op("add", {y, bias}) : y;
}

Operand rms_norm(OpWriter& g, const Operand& x, const Operand& scale, int axis, double epsilon) {
    invalid_if(axis < 0, "the input is a scalar, which has no last axis");
    const Shape whole = g.shape(x), inner(whole.begin() + axis, whole.end());
    const NamedAttrs options{{"dimensions", g.rank(x) - axis}, {"epsilon", epsilon}};
    if (g.has_shape(scale, inner) && scale->type == x->type) return g.op("rms_norm", {x, scale}, options);
    return g.op("mul", {g.cast(g.op("rms_norm", {x}, options), scale->type), scale});
}

std::span<const Operator> normalization_operators() {
    static const Operator kOperators[] = {
        {"BatchNormalization", 1, batch_normalization,
         "5 -> 1..5, consumed_inputs ints, epsilon float, is_test int, momentum float, spatial int; 6: 5 -> "
         "1..5, epsilon float, is_test int, momentum float, spatial int; 7: 5 -> 1..5, epsilon float, "
         "momentum float, spatial int; 9: 5 -> 1..5, epsilon float, momentum float; 14: 5 -> 1..3, epsilon "
         "float, momentum float, training_mode int"},
        {"GroupNormalization", 18, group_normalization,
         "3 -> 1, epsilon float, num_groups int, stash_type int"},
        {"InstanceNormalization", 1, instance_normalization,
         "3 -> 1, consumed_inputs ints, epsilon float; 6: 3 -> 1, epsilon float"},
        {"LRN", 1, local_response_normalization, "1 -> 1, alpha float, beta float, bias float, size int"},
        {"LayerNormalization", 1, layer_normalization,
         "2..3 -> 1..3, axis int, epsilon float, stash_type int"},
        {"LpNormalization", 1, lp_normalization, "1 -> 1, axis int, p int"},
        {"MeanVarianceNormalization", 1, mean_variance_normalization,
         "1 -> 1, across_channels int, normalize_variance int; 9: 1 -> 1, axes ints"},
        {"RMSNormalization", 23, rms_normalization, "2 -> 1, axis int, epsilon float, stash_type int"},
        {"SimplifiedLayerNormalization", 1, rms_normalization,
         "2 -> 1..2, axis int, epsilon float, stash_type int"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
