#include "passes/pattern.h"

#include <algorithm>

namespace headrace {

std::optional<double> Patterns::scalar(ValueId id) const { return scalar_constant(graph_, id); }

bool Patterns::may_transpose(ValueId id) const {
    const Node* node = producer(id, "transpose");
    return node && is_used_once(id) &&
           std::holds_alternative<std::vector<std::int64_t>>(attr_value(*node, "permutation"));
}

Status Patterns::transpose(ValueId id) {
    Node& node = graph_.nodes[static_cast<std::size_t>(graph_.value(id).producer)];
    auto axes = attr<std::vector<std::int64_t>>(node, "permutation");
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    HR_ASSIGN(node.attrs, node.op->make_attrs({{"permutation", axes}}));
    Shape& shape = graph_.value(id).type.shape;
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    return success();
}

Result<bool> Patterns::replace(NodeId at, OpName op, std::vector<ValueId> operands, const NamedAttrs& attrs) {
    const auto is_current = [&](ValueId id) {
        return id == kNoValue || writer_[static_cast<std::size_t>(id)] < 0 ||
               writer_[static_cast<std::size_t>(id)] > at;
    };
    const OpDef* def = &catalog_op(op);
    while (!operands.empty() && operands.back() == kNoValue) operands.pop_back();
    if (!std::all_of(operands.begin(), operands.end(), is_current)) return false;
    Node& node = graph_.nodes[static_cast<std::size_t>(at)];
    for (ValueId id : node.inputs)
        if (id != kNoValue) --uses_[static_cast<std::size_t>(id)];
    for (ValueId id : operands)
        if (id != kNoValue) ++uses_[static_cast<std::size_t>(id)];
    HR_ASSIGN(node.attrs, def->make_attrs(attrs));
    node.op = def;
    node.inputs = std::move(operands);
    return true;
}

}  // namespace headrace
