#include <algorithm>
#include <map>

#include "doors/onnx/ops/elementwise.h"
#include "doors/onnx/ops/linear_algebra.h"
#include "doors/onnx/ops/onnx_node.h"
#include "doors/onnx/reading/numbers.h"

/// Products, convolutions and norms of ONNX Runtime's optimisers with what comes before and behind them.
namespace headrace::onnx {
namespace {

using Parameters = std::vector<std::string_view>;

/// Activations that may be fused, with the names of their parameters.
const std::map<std::string_view, Parameters>& activations() {
    static const std::map<std::string_view, Parameters> kAll{
        {"Clip", {"min", "max"}},
        {"Elu", {"alpha"}},
        {"Gelu", {}},
        {"HardSigmoid", {"alpha", "beta"}},
        {"HardSwish", {}},
        {"LeakyRelu", {"alpha"}},
        {"Mish", {}},
        {"QuickGelu", {"alpha"}},
        {"Relu", {}},
        {"Selu", {"alpha", "gamma"}},
        {"Sigmoid", {}},
        {"Softplus", {}},
        {"Softsign", {}},
        {"Swish", {}},
        {"Tanh", {}},
        {"ThresholdedRelu", {"alpha"}},
    };
    return kAll;
}

/// The parameters of the activation, which may be none.
Parameters activation_parameters(const Node& node) {
    const std::string name = node.text("activation", "");
    if (name.empty()) return {};
    if (const auto found = activations().find(name); found != activations().end()) return found->second;
    std::string names;
    for (const auto& [known_name, parameters] : activations()) {
        names += names.empty() ? "" : ", ";
        names += known_name;
    }
    throw Refused(fmt::format("activation is '{}'; {} are read", name, names),
                  "Save the model before ONNX Runtime's optimiser fuses the activation into it");
}

using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

/// By the operator that the attribute activation names, with attributes of its own.
Operand activated(OpWriter& g, const Node& node, const Operand& y, Attributes attributes) {
    const std::string name = node.text("activation", "");
    if (name.empty()) return y;
    Node made = onnx_node(node, name, 6, {y});
    if (name == "QuickGelu") made.domain = kMicrosoft;
    made.outputs.resize(1);
    made.attributes = std::move(attributes);
    return read_onnx(g, made).at(0);
}

/// The parameters of a convolution's activation, which are a list.
Attributes listed_parameters(const Node& node) {
    const auto values = node.real_list("activation_params").value_or(std::vector<double>());
    const Parameters names = activation_parameters(node);
    Attributes found;
    for (std::size_t i = 0; i < std::min(values.size(), names.size()); ++i)
        found.emplace_back(std::string(names[i]), values[i]);
    return found;
}

/// Those of a product's, which are attributes by themselves.
Attributes named_parameters(const Node& node) {
    Attributes found;
    for (std::string_view name : activation_parameters(node)) {
        const std::string own = fmt::format("activation_{}", name);
        if (node.has(own)) found.emplace_back(std::string(name), node.real(own, 0));
    }
    return found;
}

/// A convolution, plus an operand, and an activation of that.
Operand fused_conv(OpWriter& g, const Node& node) {
    const Attributes parameters = listed_parameters(node);
    Operand y =
        read_onnx(g, onnx_node(node, "Conv", 18, {node.x(), node.operand(1), node.optional(2)})).at(0);
    if (node.optional(3)) y = g.op("add", {y, node.operand(3)});
    return activated(g, node, y, parameters);
}

/// The channels of images lie last, with NhwcConv also those of filters.
Operand in_channels_last_conv(OpWriter& g, const Node& node) {
    Node made = node;
    made.inputs = {channels_first(g, node.x()), node.operand(1), node.optional(2), nullptr};
    if (node.op == "NhwcConv") made.inputs[1] = channels_first(g, node.operand(1));
    if (node.optional(3)) made.inputs[3] = channels_first(g, node.operand(3));
    return channels_last(g, fused_conv(g, made));
}

Operand in_channels_last_max_pool(OpWriter& g, const Node& node) {
    Node made = onnx_node(node, "MaxPool", 18, {channels_first(g, node.x())});
    made.outputs.resize(1);
    return channels_last(g, read_onnx(g, made).at(0));
}

// --- products

/// A matrix or a batch of them; its batch may lie between its rows and its columns.
Operand turned(OpWriter& g, const Node& node, const Operand& x, std::string_view which) {
    std::vector<std::int64_t> order = counted_list(g.rank(x));
    if (order.size() < 2) return x;
    if (node.flag(fmt::format("transBatch{}", which), false))
        std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (node.flag(fmt::format("trans{}", which), false)) std::swap(order.back(), *(order.end() - 2));
    return g.transpose(x, order);
}

Operand fused_matmul(OpWriter& g, const Node& node) {
    const Attributes parameters = named_parameters(node);
    const Operand a = turned(g, node, node.x(), "A"), b = turned(g, node, node.operand(1), "B");
    return activated(g, node, g.times(matrix_product(g, a, b), node.real("alpha", 1)), parameters);
}

Operand fused_gemm(OpWriter& g, const Node& node) {
    const Attributes parameters = named_parameters(node);
    return activated(g, node, read_onnx(g, onnx_node(node, "Gemm", 13, node.inputs)).at(0), parameters);
}

// --- sums and norms

Operand bias_add(OpWriter& g, const Node& node) {
    return g.op("add", {g.op("add", {node.x(), node.operand(1)}), node.operand(2)});
}

/// The first half times the Gelu of the second.
Operand bias_split_gelu(OpWriter& g, const Node& node) {
    const Operand x = g.op("add", {node.x(), node.operand(1)});
    invalid_if(g.rank(x) == 0, "the input is a scalar, which has no two halves");
    const int last = g.rank(x) - 1;
    const std::int64_t half = g.fixed(g.shape(x).back(), "the width") / 2;
    return g.op("mul", {g.cut(x, last, 0, half), g.op("gelu", {g.cut(x, last, half, half)})});
}

/// Over the axes from `axis` on; the bias lacks some of those before it.
Operand bias_softmax(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    Operand bias = node.operand(1);
    const int axis = g.axis(x, node.integer("axis", 1)), rank = g.rank(x), own = g.rank(bias);
    if (node.flag("is_inner_broadcast", true) && own < rank) {
        Shape sizes = g.shape(bias);
        const int lead = own - (rank - axis);
        invalid_if(lead < 0, "the bias {} lacks axes of the softmax", str(sizes));
        sizes.insert(sizes.begin() + lead, static_cast<std::size_t>(rank - own), 1);
        bias = g.reshape(bias, sizes);
    }
    Node made = onnx_node(node, "Softmax", 11, {g.op("add", {x, bias})});
    made.attributes = {{"axis", std::int64_t{axis}}};
    return read_onnx(g, made).at(0);
}

Operand contrib_scaled_silu(OpWriter& g, const Node& node) {
    const Operand y = scaled_silu(g, node.x(), node.real("alpha", 1));
    return node.optional(1) ? g.op("mul", {y, node.operand(1)}) : y;
}

/// Images whose channels lie last, unless channels_last is 0.
Operand in_groups(OpWriter& g, const Node& node, const Operand& x) {
    const bool is_last = node.flag("channels_last", true);
    const Operand image = is_last ? channels_first(g, x) : x;
    Node made = onnx_node(node, "GroupNormalization", 21,
                          {image, g.cast(node.operand(1), x->type), g.cast(node.operand(2), x->type)});
    made.attributes = {{"num_groups", node.integer("groups")}, {"epsilon", node.real("epsilon", 1e-5)}};
    Operand y = read_onnx(g, made).at(0);
    if (is_last) y = channels_last(g, y);
    return node.flag("activation", false) ? g.op("silu", {y}) : y;
}

Operand contrib_group_norm(OpWriter& g, const Node& node) { return in_groups(g, node, node.x()); }

/// Normalizes input + skip + bias; that sum is the second output.
Results skip_group_norm(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const bool is_last = node.flag("channels_last", true);
    Operand skip = node.operand(3), bias = node.optional(4);
    invalid_if(g.rank(x) < 2, "the image has {} dimensions; 2 are the least", g.rank(x));
    if (g.rank(skip) == 2) {
        Shape sizes = g.shape(skip);
        sizes.insert(sizes.begin() + (is_last ? 1 : 2), static_cast<std::size_t>(g.rank(x) - 2), 1);
        skip = g.reshape(skip, sizes);
    }
    Operand total = g.op("add", {x, skip});
    if (bias) total = g.op("add", {total, is_last ? bias : g.add_axes(bias, g.rank(x) - 2)});
    return {in_groups(g, node, total), total};
}

/// Between the rows of two matrices.
Operand distances(OpWriter& g, const Node& node) {
    const std::string metric = node.text("metric", "sqeuclidean");
    invalid_if(metric != "euclidean" && metric != "sqeuclidean", "metric is '{}'; euclidean or sqeuclidean",
               metric);
    const Shape a = g.shape(node.x()), b = g.shape(node.operand(1));
    invalid_if(a.size() != 2 || b.size() != 2, "the operands have {} and {} dimensions, not 2", a.size(),
               b.size());
    const Operand rows = g.reshape(node.x(), {a[0], 1, a[1]}),
                  columns = g.reshape(node.operand(1), {1, b[0], b[1]});
    const Operand apart = g.op("sub", {rows, columns});
    const Operand total =
        g.op("reduce_sum", {g.op("mul", {apart, apart})}, {{"axes", std::vector<std::int64_t>{2}}});
    return metric == "euclidean" ? g.op("sqrt", {total}) : total;
}

// --- of ONNX's own kind

/// The operator of the same name, of a set that has it in this form.
Read as_in_onnx(std::int64_t opset) {
    return [opset](OpWriter& g, const Node& node) {
        return read_onnx(g, onnx_node(node, node.op, opset, node.inputs));
    };
}

Operand expand_dims(OpWriter& g, const Node& node) {
    Shape sizes = g.shape(node.x());
    const std::int64_t axis = node.integer_at(1, "the axis"),
                       count = static_cast<std::int64_t>(sizes.size()) + 1;
    invalid_if(axis < -count || axis >= count, "axis {} is outside {} dimensions", axis, count);
    sizes.insert(sizes.begin() + (axis < 0 ? axis + count : axis), 1);
    return g.reshape(node.x(), sizes);
}

}  // namespace

std::span<const Operator> contrib_fused_operators() {
    static const Operator kOperators[] = {
        {"BiasAdd", 1, bias_add, "3 -> 1", kMicrosoft},
        {"BiasSoftmax", 1, bias_softmax, "2 -> 1, axis int, is_inner_broadcast int", kMicrosoft},
        {"BiasSplitGelu", 1, bias_split_gelu, "2 -> 1", kMicrosoft},
        {"CDist", 1, distances, "2 -> 1, metric string", kMicrosoft},
        {"ExpandDims", 1, expand_dims, "2 -> 1", kMicrosoft},
        {"FusedConv", 1, fused_conv,
         "2..4 -> 1, activation string, activation_params floats, auto_pad string, dilations ints, group "
         "int, kernel_shape ints, pads ints, strides ints",
         kMicrosoft},
        {"FusedGemm", 1, fused_gemm,
         "2..3 -> 1, activation string, activation_alpha float, activation_beta float, activation_gamma "
         "float, alpha float, beta float, transA int, transB int",
         kMicrosoft},
        {"FusedMatMul", 1, fused_matmul,
         "2 -> 1, alpha float, transA int, transB int, transBatchA int, transBatchB int", kMicrosoft},
        {"FusedMatMulActivation", 1, fused_matmul,
         "2 -> 1, activation string, activation_alpha float, activation_axis int, activation_beta float, "
         "activation_gamma float, alpha float, transA int, transB int, transBatchA int, transBatchB int",
         kMicrosoft},
        {"GridSample", 1, as_in_onnx(16), "2 -> 1, align_corners int, mode string, padding_mode string",
         kMicrosoft},
        {"GroupNorm", 1, contrib_group_norm,
         "3 -> 1, activation int, channels_last int, epsilon float, groups int", kMicrosoft},
        {"NhwcConv", 1, in_channels_last_conv,
         "2..3 -> 1, auto_pad string, dilations ints, group int, kernel_shape ints, pads ints, strides ints",
         kMicrosoft},
        {"NhwcFusedConv", 1, in_channels_last_conv,
         "2..4 -> 1, activation string, activation_params floats, auto_pad string, dilations ints, group "
         "int, kernel_shape ints, pads ints, strides ints",
         kMicrosoft},
        {"NhwcMaxPool", 1, in_channels_last_max_pool,
         "1 -> 1, auto_pad string, ceil_mode int, dilations ints, kernel_shape ints, pads ints, strides ints",
         kMicrosoft},
        {"ScaledSiLU", 1, contrib_scaled_silu, "1..2 -> 1, alpha float", kMicrosoft},
        {"SkipGroupNorm", 1, skip_group_norm,
         "4..5 -> 1..2, activation int, channels_last int, epsilon float, groups int", kMicrosoft},
        {"TransposeMatMul", 1, fused_matmul, "2 -> 1, alpha float, transA int, transB int", kMicrosoft},
        {"Trilu", 1, as_in_onnx(14), "1..2 -> 1, upper int", kMicrosoft},
    };
    return kOperators;
}

}  // namespace headrace::onnx
