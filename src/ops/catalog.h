#pragma once
#include <span>
#include <string_view>

#include "ir/op_def.h"

namespace headrace {

/// Every op that Headrace knows, in name order.
std::span<const OpDef* const> all_ops();

/// The op of that name, or null.
const OpDef* find_op(std::string_view name);

}  // namespace headrace
