#include <algorithm>
#include <optional>

#include "ops/catalog.h"
#include "passes/fused_product.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// A fused_matmul in the making.
struct Epilogue : FusedProduct {
    std::vector<NodeId> parts;  ///< the nodes that it replaces; it computes the result of the last

    bool has_activation() const { return activation != "none"; }
};

class Fusion {
public:
    Fusion(Graph& graph, const OpDef& fused)
        : graph_(graph),
          fused_(fused),
          uses_(count_uses(graph)),
          reader_(graph.values.size(), -1),
          writer_(state_writers(graph)),
          keep_(graph.nodes.size(), true) {
        for (std::size_t i = 0; i < graph.nodes.size(); ++i)
            for (ValueId id : graph.nodes[i].inputs)
                if (id != kNoValue) reader_[id] = static_cast<NodeId>(i);
    }

    Result<Counts> run() {
        for (std::size_t i = 0; i < keep_.size(); ++i) {
            auto epilogue = product(static_cast<NodeId>(i));
            if (!epilogue) continue;
            const Epilogue start = *epilogue;
            while (extend(*epilogue)) continue;
            if (epilogue->parts.size() == 1) continue;
            HR_TRY(replace(*epilogue));
            ++counts_["products"];
            counts_["biases"] += start.bias == kNoValue && epilogue->bias != kNoValue;
            counts_["activations"] += epilogue->has_activation() && !start.has_activation();
            counts_["residuals"] += epilogue->residual != kNoValue;
        }
        graph_.compact(keep_);
        return counts_;
    }

private:
    /// A product with a constant matrix, as the beginning.
    std::optional<Epilogue> product(NodeId id) {
        if (!keep_[id]) return std::nullopt;
        const auto product = fused_product(graph_, graph_.node(id));
        if (!product) return std::nullopt;
        const Value& b = graph_.value(product->b);
        const bool is_narrow = b.type.dtype == DType::f32 || b.type.dtype == DType::f16;
        if (b.kind != ValueKind::constant || !is_narrow) return std::nullopt;
        return Epilogue{*product, {id}};
    }

    /// Takes the only reader of the result so far into the epilogue, where it fits.
    bool extend(Epilogue& e) {
        const ValueId result = output_of(graph_.node(e.parts.back()));
        // uses_ counts being an output of the graph as well.
        if (uses_[result] != 1 || e.residual != kNoValue) return false;
        const NodeId id = reader_[result];
        if (id < 0 || !keep_[id]) return false;
        const Node& node = graph_.node(id);
        if (node.outputs.size() != 1 || graph_.value(node.outputs[0]).type != graph_.value(result).type)
            return false;
        Epilogue longer = e;
        longer.parts.push_back(id);
        if (node.op->name == "add") {
            const ValueId other = node.inputs[node.inputs[0] == result];
            if (e.bias == kNoValue && !e.has_activation() && is_row(graph_, other, result)) {
                longer.bias = other;
            } else if (graph_.value(other).type == graph_.value(result).type) {
                longer.residual = other;
            } else {
                return false;
            }
        } else if (!e.has_activation() && is_activation(node)) {
            longer.activation = node.op->name;
        } else {
            return false;
        }
        if (!is_readable(longer)) return false;
        e = std::move(longer);
        return true;
    }

    /// The fused node runs where its last part did: a state that it reads must not have been written by then.
    bool is_readable(const Epilogue& e) const {
        const NodeId last = e.parts.back();
        const auto is_current = [&](ValueId id) {
            return id == kNoValue || writer_[id] < 0 || writer_[id] > last;
        };
        return is_current(e.a) && is_current(e.bias) && is_current(e.residual);
    }

    bool is_activation(const Node& node) const {
        const auto field = std::find_if(fused_.fields.begin(), fused_.fields.end(),
                                        [](const Field& f) { return f.name == "activation"; });
        return node.inputs.size() == 1 && node.op->fields.empty() &&
               std::find(field->choices.begin(), field->choices.end(), node.op->name) != field->choices.end();
    }

    static ValueId output_of(const Node& node) { return node.outputs[0]; }

    /// Puts the fused node in the place of the last part and drops the others.
    Status replace(const Epilogue& e) {
        std::string label;
        for (NodeId part : e.parts) {  // the product's label, or else the first there is
            if (label.empty()) label = graph_.node(part).label;
            keep_[part] = false;
        }
        const NodeId last = e.parts.back();
        HR_ASSIGN(Node node, make_fused(graph_, e, graph_.node(last).outputs, std::move(label)));
        keep_[last] = true;
        graph_.nodes[static_cast<std::size_t>(last)] = std::move(node);
        return success();
    }

    Graph& graph_;
    const OpDef& fused_;
    std::vector<std::int32_t> uses_;
    std::vector<NodeId> reader_;  ///< the last node that reads each value
    std::vector<NodeId> writer_;
    std::vector<bool> keep_;  ///< false: became part of a fused node
    Counts counts_{{"products", 0}, {"biases", 0}, {"activations", 0}, {"residuals", 0}};
};

}  // namespace

Result<Counts> fuse_matmul_epilogue(Graph& graph, const PassContext&) {
    const OpDef* fused = find_op("fused_matmul");
    if (!fused) return Counts{};
    return Fusion(graph, *fused).run();
}

}  // namespace headrace
