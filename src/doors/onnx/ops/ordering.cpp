#include "doors/onnx/ops/onnx_node.h"
#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Elements in order, and the different ones.
namespace headrace::onnx {
namespace {

/// How many are wanted: an attribute before operator set 10, then an input.
Dim wanted_count(OpWriter& g, const Node& node) {
    if (node.has("k")) return node.integer("k");
    const Shape list = dims_of(g, node, 1, "k");
    invalid_if(list.size() != 1, "k (input 1) has {} numbers; it is one", list.size());
    return list[0];
}

/// The k largest or smallest along an axis, in order, and their places; of equal ones the first.
Results top_k(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const int axis = g.axis(x, node.integer("axis", -1));
    NamedAttrs order{{"axis", axis}, {"descending", node.is_one("largest", true)}};
    const Dim k = wanted_count(g, node);
    if (k.is_symbolic()) {
        Results results = g.ops("sort", {x}, order);
        for (Operand& y : results) y = g.cut(y, axis, 0, k);
        return results;
    }
    const Shape shape = g.shape(x);
    invalid_if(shape.empty(), "the input is a scalar, which has no order");
    const Dim& extent = shape[static_cast<std::size_t>(axis)];
    invalid_if(!extent.is_symbolic() && (k.size() < 0 || k.size() > extent.size()),
               "k is {}; axis {} has {} elements", k.size(), axis, extent.str());
    order.emplace_back("count", k.size());
    return g.ops("sort", {x}, order);
}

/// The different elements, or slices along an axis; where each is first, which one each is, how often.
Results unique(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    Operand whole, rows;
    int axis = 0;
    if (!node.has("axis")) {
        whole = rows = g.reshape(x, {g.size(x)});
    } else {
        axis = g.axis(x, node.integer("axis"));
        const Shape sizes = g.shape(x);
        invalid_if(sizes.empty(), "axis is {}, and the input is a scalar", axis);
        std::vector<std::int64_t> order{axis};
        Dim rest = 1;
        for (int i = 0; i < static_cast<int>(sizes.size()); ++i) {
            if (i == axis) continue;
            order.push_back(i);
            rest = rest * sizes[static_cast<std::size_t>(i)];
        }
        whole = x;
        rows = g.reshape(g.transpose(x, order), {sizes[static_cast<std::size_t>(axis)], rest});
    }
    const Results found = g.ops("unique", {rows}, {{"sorted", node.is_one("sorted", true)}});
    const Dim count = extents_of(g, found.at(3)).at(0);
    const Operand first = g.cut(found[0], 0, 0, count), counts = g.cut(found[2], 0, 0, count);
    return {g.op("gather", {whole, first}, {{"axis", axis}}), first, found[1], counts};
}

/// The unique elements of a list, in the order of their first occurrences.
Results contrib_unique(OpWriter& g, const Node& node) {
    Node plain = onnx_node(node, "Unique", 11, {node.x()});
    plain.set("sorted", std::int64_t{0});
    const Results found = unique(g, plain);
    return {found[0], found[2], found[3]};
}

}  // namespace

std::span<const Operator> ordering_operators() {
    static const Operator kOperators[] = {
        {"TopK", 1, top_k,
         "1 -> 2, axis int, k int; 10: 2 -> 2, axis int; 11: 2 -> 2, axis int, largest int, sorted int"},
        {"Unique", 11, unique, "1 -> 1..4, axis int, sorted int"},
        {"Unique", 1, contrib_unique, "1 -> 3", kMicrosoft}};
    return kOperators;
}

}  // namespace headrace::onnx
