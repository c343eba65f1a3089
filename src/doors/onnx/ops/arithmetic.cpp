#include <limits>

#include "doors/onnx/reading/carried.h"
#include "doors/onnx/reading/operators.h"

/// Arithmetic of two operands and more, and the bits of integers.
namespace headrace::onnx {
namespace {

Read binary(std::string_view op) {
    return [op](OpWriter& g, const Node& node) { return g.op(op, {node.x(), node.operand(1)}); };
}

Operand joined(OpWriter& g, const Node& node, std::string_view op) {
    Operand total = node.x();
    for (std::size_t i = 1; i < node.inputs.size(); ++i) total = g.op(op, {total, node.operand(i)});
    return node.inputs.size() == 1 ? g.op("identity", {total}) : total;
}

Read variadic(std::string_view op) {
    return [op](OpWriter& g, const Node& node) { return joined(g, node, op); };
}

Operand mean(OpWriter& g, const Node& node) {
    const Operand total = joined(g, node, "add");
    return g.op("div", {total, known(static_cast<std::int64_t>(node.inputs.size()), total->type)});
}

/// The result has the base's type, whatever the exponent's is.
Operand power(OpWriter& g, const Node& node) {
    const Operand x = node.x(), exponent = node.operand(1);
    const bool is_square = exponent->has_numbers() && exponent->known->count() == 1 &&
                           exponent->real(0) == 2 && g.rank(exponent) <= g.rank(x);
    if (is_square) return g.op("mul", {x, x});
    if (exponent->type == x->type || x->is_float()) return g.op("pow", {x, g.cast(exponent, x->type)});
    const ElementType wide = exponent->is_float() ? ElementType::f64 : ElementType::i64;
    return g.cast(g.op("pow", {g.cast(x, wide), g.cast(exponent, wide)}), x->type);
}

/// A run in which it is 0 fails, where it is whole.
Operand divisor_of(OpWriter& g, const Node& node) {
    const Operand y = node.operand(1);
    if (y->is_float() || is_small_float(y->type)) return y;
    bool is_safe = y->has_numbers();
    for (std::int64_t i = 0; is_safe && i < y->known->count(); ++i) is_safe = y->integer(i) != 0;
    const bool are_extents = y->is_known() && !y->has_numbers() && !y->is_told();
    if (is_safe || are_extents) return y;
    return g.op(
        "checked_numbers", {y},
        {{"what", "a divisor"}, {"least", std::numeric_limits<std::int64_t>::min()}, {"refuses_zero", true}});
}

Operand divide(OpWriter& g, const Node& node) { return g.op("div", {node.x(), divisor_of(g, node)}); }

/// The remainder has the sign of the divisor, or with fmod that of the dividend.
Operand modulo(OpWriter& g, const Node& node) {
    return g.op(node.flag("fmod", false) ? "fmod" : "remainder", {node.x(), divisor_of(g, node)});
}

bool has_bits(ElementType type) {
    return (type >= ElementType::i8 && type <= ElementType::u64) || type == ElementType::u16;
}

Operand bitwise_not(OpWriter& g, const Node& node) {
    const ElementType type = node.x()->type;
    invalid_if(!has_bits(type), "the input is {}; integers of 8 to 64 bits have bits to turn", name_of(type));
    std::int64_t ones = -1;
    if (type == ElementType::u16) ones = 0xffff;
    return g.op("bitwise_xor", {node.x(), known(ones, type)});
}

Operand bit_shift(OpWriter& g, const Node& node) {
    const std::string direction = node.text("direction", "");
    invalid_if(direction != "LEFT" && direction != "RIGHT", "direction is '{}'; LEFT or RIGHT", direction);
    return g.op(direction == "LEFT" ? "shift_left" : "shift_right", {node.x(), node.operand(1)});
}

ElementType target_of(const Node& node) {
    if (node.op == "CastLike") return node.operand(1)->type;
    return type_named(node.integer("to", 0), "the target type");
}

/// Floats to integers towards zero, but to 4 bits the nearest, halves away from zero.
Operand cast(OpWriter& g, const Node& node) {
    const ElementType type = target_of(node);
    Operand x = node.x();
    if (is_carried(x->type) && x->type != type) x = carried(g, x);
    if (is_small_float(type) && x->type != type) {
        const std::string direction = node.text("round_mode", "up");
        invalid_if(direction != "up" && direction != "down" && direction != "nearest",
                   "round_mode is '{}'; up, down, nearest are ONNX's", direction);
        return narrowed(g, x, type, node.is_one("saturate", true), direction);
    }
    const bool is_narrow = type == ElementType::i4 || type == ElementType::u4 || type == ElementType::i2 ||
                           type == ElementType::u2;
    if (is_narrow && x->is_float()) x = g.op("add", {x, g.op("fmod", {x, known(1, x->type)})});
    return g.cast(x, type);
}

bool has_no_bits(ElementType type) { return is_carried(type) && type != ElementType::u16; }

/// The same bits as another type of their size.
Operand bitcast(OpWriter& g, const Node& node) {
    const ElementType type = target_of(node);
    Operand x = node.x();
    refuse_if(has_no_bits(x->type) || has_no_bits(type),
              "it reads the bits of {} as {}; types of 2 bits and floats of 4 and 8 are not read",
              name_of(x->type), name_of(type));
    if (x->type == ElementType::boolean) x = g.retyped(x, ElementType::u8);
    if (x->type == ElementType::u16) x = g.cast(x, ElementType::i16);
    const auto read_as = [&](ElementType target) {
        return g.op("bitcast", {x}, {{"data_type", stored_as(target)}});
    };
    if (type == ElementType::boolean) return g.cast(read_as(ElementType::u8), type);
    if (type == ElementType::u16) return g.cast(read_as(ElementType::i16), type);
    return read_as(type);
}

}  // namespace

std::span<const Operator> arithmetic_operators() {
    static const Operator kOperators[] = {
        {"Add", 1, binary("add"),
         "2 -> 1, axis int, broadcast int, consumed_inputs ints; 6: 2 -> 1, axis int, broadcast int; 7: 2 -> "
         "1"},
        {"BitCast", 26, bitcast, "1 -> 1, to int"},
        {"BitShift", 11, bit_shift, "2 -> 1, direction string"},
        {"BitwiseAnd", 18, binary("bitwise_and"), "2 -> 1"},
        {"BitwiseNot", 18, bitwise_not, "1 -> 1"},
        {"BitwiseOr", 18, binary("bitwise_or"), "2 -> 1"},
        {"BitwiseXor", 18, binary("bitwise_xor"), "2 -> 1"},
        {"Cast", 1, cast,
         "1 -> 1, to string; 6: 1 -> 1, to int; 19: 1 -> 1, saturate int, to int; 24: 1 -> 1, round_mode "
         "string, saturate int, to int"},
        {"CastLike", 15, cast,
         "2 -> 1; 19: 2 -> 1, saturate int; 24: 2 -> 1, round_mode string, saturate int"},
        {"Div", 1, divide,
         "2 -> 1, axis int, broadcast int, consumed_inputs ints; 6: 2 -> 1, axis int, broadcast int; 7: 2 -> "
         "1"},
        {"Max", 1, variadic("max"), "1.. -> 1, consumed_inputs ints; 6: 1.. -> 1"},
        {"Mean", 1, mean, "1.. -> 1, consumed_inputs ints; 6: 1.. -> 1"},
        {"Min", 1, variadic("min"), "1.. -> 1, consumed_inputs ints; 6: 1.. -> 1"},
        {"Mod", 10, modulo, "2 -> 1, fmod int"},
        {"Mul", 1, binary("mul"),
         "2 -> 1, axis int, broadcast int, consumed_inputs ints; 6: 2 -> 1, axis int, broadcast int; 7: 2 -> "
         "1"},
        {"Pow", 1, power, "2 -> 1, axis int, broadcast int; 7: 2 -> 1"},
        {"Sub", 1, binary("sub"),
         "2 -> 1, axis int, broadcast int, consumed_inputs ints; 6: 2 -> 1, axis int, broadcast int; 7: 2 -> "
         "1"},
        {"Sum", 1, variadic("add"), "1.. -> 1, consumed_inputs ints; 6: 1.. -> 1"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
