#include "doors/webnn/spell_out_activations.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "doors/webnn/state.h"
#include "ir/graph_builder.h"
#include "ops/catalog.h"

namespace headrace::webnn {
namespace {

class Speller {
public:
    explicit Speller(const Graph& graph) : graph_(graph), ids_(graph.values.size(), kNoValue) {}

    Result<Graph> run() {
        for (std::size_t i = 0; i < graph_.values.size(); ++i) HR_TRY(take(static_cast<ValueId>(i)));
        for (const Node& node : graph_.nodes) {
            HR_ASSIGN(const auto results, add(node));
            for (std::size_t i = 0; i < results.size(); ++i) id(node.outputs[i]) = results[i];
        }
        for (const auto& [name, value] : graph_.outputs) HR_TRY(builder_.mark_output(name, id(value)));
        return builder_.finish();
    }

private:
    ValueId& id(ValueId old) { return ids_[static_cast<std::size_t>(old)]; }

    /// Inputs, states and constants; results come with their nodes.
    Status take(ValueId old) {
        const Value& value = graph_.value(old);
        if (value.kind == ValueKind::input) {
            HR_ASSIGN(id(old), builder_.input(value.name, value.type));
        } else if (value.kind == ValueKind::state) {
            HR_ASSIGN(id(old), builder_.state(value.name, value.type, value.constant));
        } else if (value.kind == ValueKind::constant) {
            HR_ASSIGN(id(old), builder_.constant(value.type, value.constant, value.name));
        }
        return success();
    }

    Result<std::vector<ValueId>> add(const Node& node) {
        std::vector<ValueId> operands;
        for (const ValueId old : node.inputs) operands.push_back(old == kNoValue ? kNoValue : id(old));
        label_ = node.label;
        if (node.op->name == "silu" || node.op->name == "gelu_tanh") {
            HR_ASSIGN(const ValueId y, activated(node.op->name, operands[0]));
            return std::vector{y};
        }
        if (node.op->name != "glu") return builder_.op(*node.op, std::move(operands), node.attrs, node.label);
        HR_ASSIGN(const ValueId gate, activated(activation_of(node), operands[0]));
        HR_ASSIGN(const ValueId y, op("mul", {gate, operands[1]}));
        return std::vector{y};
    }

    static std::string activation_of(const Node& node) {
        const auto field = std::ranges::find(node.op->fields, "activation", &Field::name);
        return std::get<std::string>(node.op->attr_values(
            node.attrs.get())[static_cast<std::size_t>(field - node.op->fields.begin())]);
    }

    Result<ValueId> activated(std::string_view name, ValueId x) {
        if (name == "none") return x;
        if (name == "gelu_tanh") return gelu_tanh(x);
        if (name != "silu") return op(name, {x});
        HR_ASSIGN(const ValueId gate, op("sigmoid", {x}));
        return op("mul", {x, gate});
    }

    /// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
    Result<ValueId> gelu_tanh(ValueId x) {
        HR_ASSIGN(const ValueId square, op("mul", {x, x}));
        HR_ASSIGN(const ValueId cube, op("mul", {square, x}));
        HR_ASSIGN(const ValueId part, with_number("mul", cube, 0.044715));
        HR_ASSIGN(const ValueId sum, op("add", {x, part}));
        HR_ASSIGN(const ValueId inner, with_number("mul", sum, std::sqrt(2 * std::numbers::inv_pi)));
        HR_ASSIGN(const ValueId curve, op("tanh", {inner}));
        HR_ASSIGN(const ValueId gate, with_number("add", curve, 1));
        HR_ASSIGN(const ValueId half, with_number("mul", x, 0.5));
        return op("mul", {half, gate});
    }

    Result<ValueId> with_number(std::string_view name, ValueId x, double number) {
        const DType type = builder_.type(x).dtype;
        const std::vector<std::byte> bytes = scalar_bytes(type, number);
        HR_ASSIGN(const ValueId scalar, builder_.constant({type, {}}, std::span<const std::byte>(bytes)));
        return op(name, {x, scalar});
    }

    Result<ValueId> op(std::string_view name, std::vector<ValueId> operands) {
        HR_ASSIGN(const auto results, builder_.op(*find_op(name), std::move(operands), NamedAttrs{}, label_));
        return results[0];
    }

    const Graph& graph_;
    GraphBuilder builder_;
    std::vector<ValueId> ids_;  ///< by the given graph's
    std::string label_;         ///< of the node that is spelled out
};

}  // namespace

Result<Graph> spell_out_activations(const Graph& graph) { return Speller(graph).run(); }

}  // namespace headrace::webnn
