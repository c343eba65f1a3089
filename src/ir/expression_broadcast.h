#pragma once
#include "ir/expression.h"

namespace headrace {

/// The extent of two that are equal, or of which one is 1. What one of them was part of before stays as it
/// is: a hundred sums of the same two are no longer than the first.
Expression broadcast(const Expression& a, const Expression& b);

}  // namespace headrace
