#pragma once
#include <functional>
#include <string_view>

#include "doors/onnx/reading/elements.h"

/// What the catalog's element-wise ops make of extents and of exact quotients of two: `floor(height * 0.5)`
/// of an open height is `height // 2`. Errors: Undecided for what extents do not say.
namespace headrace::onnx {

using BinaryItem = std::function<Item(const Item&, const Item&)>;
using UnaryItem = std::function<Item(const Item&)>;

/// The function on items for an op of the catalog, on integers or floats; null where there is none.
BinaryItem binary_of_items(std::string_view op, bool is_float);
UnaryItem unary_of_items(std::string_view op);

Item sum_of(const Item& a, const Item& b);
Item difference_of(const Item& a, const Item& b);
Item product_of(const Item& a, const Item& b);
Item quotient_of(const Item& a, const Item& b);
/// Rounded up.
Dim ceiling_of(const Item& a);
/// As Cast has it.
Dim toward_zero(const Item& a);
/// a where the condition, 0 or 1, is 1; b where it is 0.
Item either_of(const Item& condition, const Item& a, const Item& b);

}  // namespace headrace::onnx
