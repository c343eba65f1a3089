#include "doors/onnx/reading/carried.h"

#include <set>

namespace headrace::onnx {
namespace {

/// Ops whose results may lie outside the operands' type where a wider one carries it.
bool may_leave(std::string_view op) {
    static const std::set<std::string_view> kOps{"add",
                                                 "sub",
                                                 "mul",
                                                 "pow",
                                                 "shift_left",
                                                 "reduce_sum",
                                                 "reduce_sum_square",
                                                 "reduce_product",
                                                 "cumulative_sum"};
    return kOps.contains(op);
}

/// The integers of a carrier type, wrapped to the bits of the model's integer type.
Operand low_bits(OpWriter& g, const Operand& y, ElementType type) {
    const WholeRange range = range_of(type);
    const Operand kept = g.op("bitwise_and", {y, known(range.high - range.low, y->type)});
    if (range.low == 0) return kept;
    const Operand sign = known(-range.low, y->type);
    return g.op("sub", {g.op("bitwise_xor", {kept, sign}), sign});
}

}  // namespace

WholeRange range_of(ElementType type) {
    if (type == ElementType::u16) return {0, 65535};
    return type == ElementType::i2 ? WholeRange{-2, 1} : WholeRange{0, 3};
}

Operand narrowed(OpWriter& g, const Operand& x, ElementType type, bool saturate, std::string_view direction) {
    if (is_small_float(type)) {
        NamedAttrs options{{"format", std::string(name_of(type))}, {"saturate", saturate}};
        if (type == ElementType::f8e8m0) options.emplace_back("direction", std::string(direction));
        return g.retyped(g.op("round_to", {g.cast(x, ElementType::f32)}, options), type);
    }
    const Operand whole = x->is_float() ? g.cast(x, ElementType::i32) : x;
    return g.retyped(low_bits(g, g.cast(whole, element_type(stored_as(type))), type), type);
}

Operand carried(OpWriter& g, const Operand& x) { return g.retyped(x, element_type(stored_as(x->type))); }

Operand as_carried(OpWriter& g, const Operand& y, ElementType type, std::string_view op) {
    return g.retyped(!is_small_float(type) && may_leave(op) ? low_bits(g, y, type) : y, type);
}

}  // namespace headrace::onnx
