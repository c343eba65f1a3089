#include <algorithm>
#include <optional>

#include "ops/catalog.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

/// A fused_matmul in the making: activation(a · b + bias) + residual.
struct Epilogue {
    ValueId a = kNoValue, b = kNoValue, bias = kNoValue, residual = kNoValue;
    bool transpose_b = false;
    std::string activation = "none";
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
    /// A node that a fused_matmul can stand for, as its beginning.
    std::optional<Epilogue> product(NodeId id) {
        const Node& node = graph_.node(id);
        if (!keep_[id] || node.inputs.size() < 2) return std::nullopt;
        Epilogue e{.a = node.inputs[0], .b = node.inputs[1], .parts = {id}};
        const auto operand = [&](std::size_t i) {
            return i < node.inputs.size() ? node.inputs[i] : kNoValue;
        };
        if (node.op->name == "gemm") {
            e.bias = operand(2);
            e.transpose_b = attr<bool>(node, "b_transpose");
            if (attr<bool>(node, "a_transpose") || attr<double>(node, "alpha") != 1) return std::nullopt;
            if (e.bias != kNoValue && (attr<double>(node, "beta") != 1 || !is_row(e.bias, output_of(node))))
                return std::nullopt;
        } else if (node.op == &fused_) {
            e.bias = operand(2);
            e.residual = operand(3);
            e.transpose_b = attr<bool>(node, "transpose_b");
            e.activation = attr<std::string>(node, "activation");
        } else if (node.op->name != "matmul") {
            return std::nullopt;
        }
        const Value& b = graph_.value(e.b);
        const bool is_narrow = b.type.dtype == DType::f32 || b.type.dtype == DType::f16;
        if (b.kind != ValueKind::constant || b.type.rank() != 2 || !is_narrow) return std::nullopt;
        return e;
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
            if (e.bias == kNoValue && !e.has_activation() && is_row(other, result)) {
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

    /// One number for each column of `product`: [n], or a constant [1, ..., n].
    bool is_row(ValueId id, ValueId product) const {
        const Value& v = graph_.value(id);
        const Shape& shape = v.type.shape;
        if (shape.empty() || shape.back() != graph_.value(product).type.shape.back()) return false;
        if (shape.size() == 1) return true;
        return v.kind == ValueKind::constant &&
               std::all_of(shape.begin(), shape.end() - 1, [](const Dim& d) { return d.is(1); });
    }

    static ValueId output_of(const Node& node) { return node.outputs[0]; }

    /// The constant as a list, with the same bytes.
    ValueId flattened(ValueId id) {
        Value v = graph_.value(id);
        if (v.type.rank() == 1) return id;
        v.type.shape.erase(v.type.shape.begin(), v.type.shape.end() - 1);
        graph_.values.push_back(std::move(v));
        return static_cast<ValueId>(graph_.values.size() - 1);
    }

    /// Puts the fused node in the place of the last part and drops the others.
    Status replace(const Epilogue& e) {
        Node& last = graph_.nodes[e.parts.back()];
        Node node{.op = &fused_, .inputs = {e.a, e.b, e.bias, e.residual}, .outputs = last.outputs};
        HR_ASSIGN(node.attrs,
                  fused_.make_attrs({{"transpose_b", e.transpose_b}, {"activation", e.activation}}));
        if (e.bias != kNoValue) node.inputs[2] = flattened(e.bias);
        while (node.inputs.back() == kNoValue) node.inputs.pop_back();
        for (NodeId part : e.parts) {  // the product's label, or else the first there is
            if (node.label.empty()) node.label = graph_.node(part).label;
            keep_[part] = false;
        }
        keep_[e.parts.back()] = true;
        last = std::move(node);
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
