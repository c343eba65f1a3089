#include "doors/onnx/reading/operators.h"

/// Values that may be missing.
namespace headrace::onnx {
namespace {

Value optional(OpWriter& /*g*/, const Node& node) {
    const Value x = node.value(0);
    invalid_if(as_optional(x) != nullptr, "input 0 is an optional; it must be a tensor or a sequence");
    return is_missing(x) ? optional_of(std::nullopt) : optional_of(x);
}

Value optional_has_element(OpWriter& /*g*/, const Node& node) {
    const Value x = node.value(0);
    const Optional* optional = as_optional(x);
    if (optional && optional->is_there) return optional->is_there;
    const bool is_there = optional ? optional->item.has_value() : !is_missing(x);
    return known(is_there ? 1 : 0, ElementType::boolean);
}

Value optional_get_element(OpWriter& /*g*/, const Node& node) {
    const Value x = node.value(0);
    invalid_if(is_missing(x), "input 0 is missing");
    const Optional* optional = as_optional(x);
    if (!optional) return x;
    invalid_if(!optional->item, "the optional is empty");
    return *optional->item;
}

}  // namespace

std::span<const Operator> optionals_operators() {
    static const Operator kOperators[] = {
        {"Optional", 15, optional, "0..1 -> 1, type type"},
        {"OptionalGetElement", 15, optional_get_element, "1 -> 1"},
        {"OptionalHasElement", 15, optional_has_element, "1 -> 1; 18: 0..1 -> 1"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
