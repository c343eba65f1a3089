#include "doors/webnn/files/spell_out_activations.h"

#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "doors/webnn/files/graph_copy.h"
#include "doors/webnn/state.h"
#include "ops/op_name.h"

namespace headrace::webnn {
namespace {

class ActivationSpeller final : public GraphCopy {
public:
    using GraphCopy::GraphCopy;

private:
    Result<std::vector<ValueId>> add(const Node& node) override {
        std::vector<ValueId> operands;
        for (const ValueId old : node.inputs) operands.push_back(old == kNoValue ? kNoValue : id(old));
        label_ = node.label;
        const bool checks = is(node, "checked_indices") || is(node, "checked_numbers");
        if (checks) return std::vector{operands[0]};  // WebNN's operators clamp
        if (is(node, "silu") || is(node, "gelu_tanh")) {
            HR_ASSIGN(const ValueId y, activated(node.op->name, operands[0]));
            return std::vector{y};
        }
        if (!is(node, "glu")) return builder_.op(*node.op, std::move(operands), node.attrs, node.label);
        HR_ASSIGN(const ValueId gate, activated(attr<std::string>(node, "activation"), operands[0]));
        HR_ASSIGN(const ValueId y, op("mul", {gate, operands[1]}));
        return std::vector{y};
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
        return GraphCopy::op(name, std::move(operands), {}, label_);
    }

    std::string label_;  ///< of the node that is spelled out
};

}  // namespace

Result<Graph> spell_out_activations(const Graph& graph) { return ActivationSpeller(graph).run(); }

}  // namespace headrace::webnn
