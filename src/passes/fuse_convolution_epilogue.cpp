#include <optional>

#include "ops/catalog.h"
#include "passes/epilogue_fusion.h"
#include "passes/pass.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// A fused_conv2d in the making.
struct ConvolutionEpilogue {
    ValueId residual = kNoValue;
    NamedAttrs attrs;           ///< besides those of the convolution
    bool is_active = false;     ///< has an activation or limits
    std::vector<NodeId> parts;  ///< the nodes that it replaces; it computes the result of the last
};

class ConvolutionFusion {
public:
    ConvolutionFusion(Graph& graph, const OpDef& fused) : graph_(graph), fused_(fused), followers_(graph) {}

    Result<Counts> run() {
        for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
            const auto id = static_cast<NodeId>(i);
            if (!followers_.is_kept(id) || !is_convolution(graph_.node(id))) continue;
            ConvolutionEpilogue epilogue{.parts = {id}};
            while (extend(epilogue)) continue;
            if (epilogue.parts.size() == 1) continue;
            HR_TRY(replace(epilogue));
            ++counts_["convolutions"];
            counts_["activations"] += epilogue.is_active;
            counts_["residuals"] += epilogue.residual != kNoValue;
        }
        followers_.compact();
        return counts_;
    }

private:
    /// One that our kernels compute, in the order that choose_layouts may have to bring it into; ggml would
    /// need a pass over memory for each part all the same.
    bool is_convolution(const Node& node) const {
        return is(node, "conv2d") && graph_.value(node.outputs[0]).type.dtype == DType::f32 &&
               graph_.value(node.inputs[1]).kind == ValueKind::constant;
    }

    /// Takes the only reader of the result so far into the epilogue, where it fits.
    bool extend(ConvolutionEpilogue& e) {
        const NodeId id = followers_.next(e.parts);
        if (id < 0) return false;
        const Node& node = graph_.node(id);
        ConvolutionEpilogue longer = e;
        longer.parts.push_back(id);
        if (is(node, "add")) {
            const ValueId result = graph_.node(e.parts.back()).outputs[0], other = other_addend(node, result);
            if (e.residual != kNoValue || graph_.value(other).type != graph_.value(result).type) return false;
            longer.residual = other;
        } else if (is_active_after(e, node)) {
            add_activation(longer, node);
        } else {
            return false;
        }
        // The fused node runs where its last part did.
        const Node& conv = graph_.node(e.parts[0]);
        const ValueId bias = conv.inputs.size() > 2 ? conv.inputs[2] : kNoValue;
        if (!followers_.are_current(id, {conv.inputs[0], bias, longer.residual})) return false;
        e = std::move(longer);
        return true;
    }

    bool is_active_after(const ConvolutionEpilogue& e, const Node& node) const {
        return !e.is_active && (is(node, "clamp") || is_activation_of(fused_, node));
    }

    void add_activation(ConvolutionEpilogue& e, const Node& node) const {
        e.is_active = true;
        if (e.residual != kNoValue) e.attrs.emplace_back("residual_first", true);
        if (!is(node, "clamp")) {
            e.attrs.emplace_back("activation", std::string(node.op->name));
            return;
        }
        for (const char* name : {"min_value", "max_value"})
            if (const auto limit = clamp_limit(node, name)) e.attrs.emplace_back(name, *limit);
    }

    Status replace(const ConvolutionEpilogue& e) {
        const Node& conv = graph_.node(e.parts[0]);
        NamedAttrs attrs = named_attrs(conv);
        attrs.insert(attrs.end(), e.attrs.begin(), e.attrs.end());
        Node node{.op = &fused_,
                  .inputs = conv.inputs,
                  .outputs = graph_.node(e.parts.back()).outputs,
                  .label = followers_.label(e.parts)};
        HR_ASSIGN(node.attrs, fused_.make_attrs(attrs));
        if (e.residual != kNoValue) {
            node.inputs.resize(3, kNoValue);
            node.inputs.push_back(e.residual);
        }
        followers_.replace(e.parts, std::move(node));
        return success();
    }

    Graph& graph_;
    const OpDef& fused_;
    EpilogueFusion followers_;
    Counts counts_{{"convolutions", 0}, {"activations", 0}, {"residuals", 0}};
};

/// Makes one fused_conv2d of a conv2d in f32 with a constant filter and what follows it: activation or
/// limits, residual, in either order.
Result<Counts> fuse_convolution_epilogue(Graph& graph, const PassContext&) {
    return ConvolutionFusion(graph, catalog_op("fused_conv2d")).run();
}

}  // namespace

Pass fuse_convolution_epilogue_pass() {
    // An epilogue would take parts of compositions.
    return {.name = "fuse_convolution_epilogue",
            .summary = "joins convolution, activation or limits, and residual",
            .run = &fuse_convolution_epilogue,
            .after = {"fold_batch_normalization", "recognize_compositions", "sink_reshapes",
                      "fuse_integer_product_epilogue"}};
}

}  // namespace headrace
