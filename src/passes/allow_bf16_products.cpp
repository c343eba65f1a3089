#include "ops/catalog.h"
#include "passes/fused_matmul.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// Smaller weights are not worth the loss.
constexpr std::int64_t kLeastElements = 1024;

bool is_weight(const Graph& graph, ValueId id) {
    const Value& weight = graph.value(id);
    return weight.kind == ValueKind::constant && weight.type.format == BlockFormat::plain &&
           weight.type.elements() >= kLeastElements;
}

bool is_f32(const Graph& graph, ValueId id) { return graph.value(id).type.dtype == DType::f32; }

/// Marks a product of f32 rows with a constant matrix in f32, or in bf16, where nothing is lost.
Result<bool> allow_in_product(Graph& graph, Node& node) {
    auto product = fused_matmul(graph, node);
    if (!product || !is_weight(graph, product->b) || !is_f32(graph, product->a) ||
        !(is_f32(graph, product->b) || graph.value(product->b).type.dtype == DType::bf16))
        return false;
    product->round_to_bf16 = true;
    HR_ASSIGN(Node made, make_fused(graph, *product, node.outputs, node.label));
    node = std::move(made);
    return true;
}

/// The other operand of a matrix in blocks may be rounded to 8 bits, for which there are kernels where
/// products in bf16 would have to expand the matrix.
Result<bool> allow_in_product_of_blocks(Graph& graph, Node& node, const PassContext& context) {
    auto product = fused_matmul(graph, node);
    if (!product || graph.value(product->b).type.format == BlockFormat::plain || product->round_a ||
        !context.round_activations)
        return false;
    product->round_a = true;
    HR_ASSIGN(Node made, make_fused(graph, *product, node.outputs, node.label));
    node = std::move(made);
    return true;
}

/// What is summed for each channel alone is read once, and not multiplied in pairs.
bool is_depthwise(const Graph& graph, const Node& node) {
    const auto groups = attr<std::int64_t>(node, "groups");
    const auto sizes = graph.value(node.inputs[1]).type.sizes();
    return groups > 1 && sizes[attr<std::string>(node, "filter_layout").find('i')] == 1;
}

/// Sets the attribute, of the op in whose place `as` comes.
Status allow(Node& node, const OpDef* as) {
    NamedAttrs attrs = named_attrs(node);
    std::erase_if(attrs, [](const auto& attr) { return attr.first == "round_to_bf16"; });
    attrs.emplace_back("round_to_bf16", true);
    node.op = as;
    HR_ASSIGN(node.attrs, node.op->make_attrs(attrs));
    return success();
}

Result<bool> allow_in_convolution(Graph& graph, Node& node) {
    if (!is(node, "conv2d") && !is(node, "fused_conv2d")) return false;
    if (!is_weight(graph, node.inputs[1]) || !is_f32(graph, node.inputs[0]) || is_depthwise(graph, node))
        return false;
    HR_TRY(allow(node, &catalog_op("fused_conv2d")));
    return true;
}

Result<bool> allow_in_recurrence(Graph& graph, Node& node) {
    if (!is(node, "lstm_recurrence") || !is_weight(graph, node.inputs[1]) || !is_f32(graph, node.inputs[0]))
        return false;
    HR_TRY(allow(node, node.op));
    return true;
}

Result<bool> allow_in_attention(Graph& graph, Node& node) {
    if (!is(node, "scaled_dot_product_attention") || !is_f32(graph, node.inputs[0])) return false;
    HR_TRY(allow(node, node.op));
    return true;
}

/// Lets products and convolutions of f32 with constant weights, and attention, round what they multiply to
/// bf16, or to 8 bits where the weights are in blocks, where PassContext::round_to_bf16 says so. Their sums
/// stay in f32, and so does what lies between nodes.
Result<Counts> allow_bf16_products(Graph& graph, const PassContext& context) {
    std::int64_t products = 0, of_blocks = 0, convolutions = 0, attentions = 0, recurrences = 0;
    for (std::size_t i = 0; i < graph.nodes.size() && context.round_to_bf16; ++i) {
        HR_ASSIGN(const bool is_product, allow_in_product(graph, graph.nodes[i]));
        HR_ASSIGN(const bool is_convolution, allow_in_convolution(graph, graph.nodes[i]));
        HR_ASSIGN(const bool is_attention, allow_in_attention(graph, graph.nodes[i]));
        HR_ASSIGN(const bool is_recurrence, allow_in_recurrence(graph, graph.nodes[i]));
        HR_ASSIGN(const bool is_of_blocks, allow_in_product_of_blocks(graph, graph.nodes[i], context));
        recurrences += is_recurrence, of_blocks += is_of_blocks;
        products += is_product, convolutions += is_convolution, attentions += is_attention;
    }
    return Counts{{"products", products},
                  {"products_of_blocks", of_blocks},
                  {"convolutions", convolutions},
                  {"attentions", attentions},
                  {"recurrences", recurrences}};
}

}  // namespace

Pass allow_bf16_products_pass() {
    return {.name = "allow_bf16_products",
            .summary = "lets products round to bf16, when asked to",
            .run = &allow_bf16_products,
            .after = {"fuse_matmul_epilogue", "fuse_convolution_epilogue", "promote_half_floats",
                      "fold_dequantize_into_matmul"}};
}

}  // namespace headrace
