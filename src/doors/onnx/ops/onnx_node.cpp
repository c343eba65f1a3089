#include "doors/onnx/ops/onnx_node.h"

#include <algorithm>

#include "doors/onnx/reading/numbers.h"

/// Operators of ONNX Runtime that are ONNX's own ones on other operands.
namespace headrace::onnx {

Node onnx_node(const Node& node, std::string_view op, std::int64_t opset, std::vector<Operand> inputs) {
    Node made = node;
    made.domain = "";
    made.op = op;
    made.opset = opset;
    made.inputs = std::move(inputs);
    made.values.clear();
    return made;
}

Results read_onnx(OpWriter& g, const Node& node) {
    const Operator* found = find_operator(node.domain, node.op);
    refuse_if(found == nullptr, "the operator {} that it stands for is not read", node.op);
    return tensors_of(found->read(g, node), "result");
}

Operand channels_first(OpWriter& g, const Operand& x) {
    invalid_if(g.rank(x) < 2, "the image has {} dimensions; 2 are the least", g.rank(x));
    std::vector<std::int64_t> order = counted_list(g.rank(x));
    std::rotate(order.begin() + 1, order.end() - 1, order.end());
    return g.transpose(x, order);
}

Operand channels_last(OpWriter& g, const Operand& x) {
    std::vector<std::int64_t> order = counted_list(g.rank(x));
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
    return g.transpose(x, order);
}

}  // namespace headrace::onnx
