#include <map>

#include "doors/onnx/ops/indexing.h"
#include "doors/onnx/reading/operators.h"

/// Writing at indices.
namespace headrace::onnx {
namespace {

/// The catalog's name of a reduction; "" for none.
std::string combination_of(const Node& node) {
    static const std::map<std::string, std::string> kCombine{
        {"none", ""}, {"add", "sum"}, {"mul", "product"}, {"max", "max"}, {"min", "min"}};
    const std::string reduction = node.text("reduction", "none");
    const auto found = kCombine.find(reduction);
    invalid_if(found == kCombine.end(), "reduction is '{}'; none, add, mul, max, min are ONNX's", reduction);
    return found->second;
}

Operand scatter_elements(OpWriter& g, const Node& node) {
    const Operand x = node.x(), updates = node.operand(2);
    const std::int64_t axis = g.axis(x, node.integer("axis", 0));
    const std::string combination = combination_of(node);
    const Operand indices = checked_indices(g, x, as_indices(g, node.operand(1)), {axis});
    if (combination.empty()) return g.op("scatter_elements", {x, indices, updates}, {{"axis", axis}});
    return g.op("scatter_reduce", {x, indices, updates}, {{"axis", axis}, {"reduction", combination}});
}

/// All indexed dimensions as one, so that an index is one number, and each slice a row.
Operand combined_slices(OpWriter& g, const Operand& x, const Operand& tuples, const Operand& updates,
                        const std::string& combination) {
    const Shape shape = g.shape(x), own = g.shape(tuples);
    invalid_if(own.empty(), "the indices (input 1) are a scalar; they are tuples");
    const std::int64_t depth = g.fixed(own.back(), "how many dimensions the indices are of");
    invalid_if(depth > static_cast<std::int64_t>(shape.size()),
               "the indices are of {} dimensions; the input has {}", depth, shape.size());
    const Shape indexed(shape.begin(), shape.begin() + depth);
    const Dim row = product_of(std::span(shape).subspan(indexed.size()));
    const Dim count = product_of(std::span(own).first(own.size() - 1));
    const Operand negative = g.op("lesser", {tuples, known(0, ElementType::i64)});
    const Operand indices = g.op("where", {negative, g.op("add", {tuples, known(indexed)}), tuples});
    const Operand place = g.op("reduce_sum", {g.op("mul", {indices, known(row_major(indexed))})},
                               {{"axes", std::vector{static_cast<std::int64_t>(own.size()) - 1}}});
    const Operand rows = g.expand(g.reshape(place, {count, 1}), {count, row});
    const Operand flat = g.reshape(x, {product_of(indexed), row});
    const Operand y = g.op("scatter_reduce", {flat, rows, g.reshape(updates, {count, row})},
                           {{"axis", 0}, {"reduction", combination}});
    return g.reshape(y, shape);
}

Operand scatter_nd(OpWriter& g, const Node& node) {
    const Operand x = node.x(), updates = node.operand(2);
    const std::string combination = combination_of(node);
    const Operand indices = checked_tuples(g, x, as_indices(g, node.operand(1)));
    if (combination.empty()) return g.op("scatter_nd", {x, indices, updates});
    return combined_slices(g, x, g.cast(indices, ElementType::i64), updates, combination);
}

}  // namespace

std::span<const Operator> scattering_operators() {
    static const Operator kOperators[] = {
        {"Scatter", 9, scatter_elements, "3 -> 1, axis int"},
        {"ScatterElements", 11, scatter_elements, "3 -> 1, axis int; 16: 3 -> 1, axis int, reduction string"},
        {"ScatterND", 11, scatter_nd, "3 -> 1; 16: 3 -> 1, reduction string"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
