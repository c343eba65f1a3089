#include "doors/webnn/files/graph_copy.h"

#include <utility>

namespace headrace::webnn {

Result<Graph> GraphCopy::run() {
    for (std::size_t i = 0; i < graph_.values.size(); ++i) HR_TRY(take(static_cast<ValueId>(i)));
    for (const Node& node : graph_.nodes) {
        HR_ASSIGN(const auto results, add(node));
        for (std::size_t i = 0; i < results.size(); ++i) id(node.outputs[i]) = results[i];
    }
    for (const auto& [name, value] : graph_.outputs) HR_TRY(builder_.mark_output(name, id(value)));
    return builder_.finish();
}

/// Inputs, states and constants; results come with their nodes.
Status GraphCopy::take(ValueId old) {
    const Value& value = graph_.value(old);
    if (value.kind == ValueKind::input) {
        HR_ASSIGN(id(old), builder_.input(value.name, value.type));
    } else if (value.kind == ValueKind::state) {
        HR_ASSIGN(id(old), builder_.state(value.name, value.type, value.constant));
    } else if (value.kind == ValueKind::constant) {
        HR_TRY(take_constant(old));
    }
    return success();
}

Status GraphCopy::take_constant(ValueId old) {
    const Value& value = graph_.value(old);
    HR_ASSIGN(id(old), builder_.constant(value.type, value.constant, value.name));
    return success();
}

Result<ValueId> GraphCopy::op(std::string_view name, std::vector<ValueId> operands, const NamedAttrs& attrs,
                              const std::string& label) {
    HR_ASSIGN(const auto results, builder_.op(*find_op(name), std::move(operands), attrs, label));
    return results[0];
}

}  // namespace headrace::webnn
