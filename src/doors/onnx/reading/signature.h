#pragma once
#include <string_view>

#include "doors/onnx/reading/node.h"

namespace headrace::onnx {

/// What an operator takes and gives, as its row says it:
///
///     "1 -> 1, max float, min float; 11: 1..3 -> 1"
///
/// Up to operator set 10 that is one input, one output and two attributes; from set 11 on one to three
/// inputs, one output and no attributes. "1.." has no upper bound. Throws a refusal for all extents where the
/// node has an attribute that is not there or of another type, or another number of inputs or outputs. As in
/// ONNX Runtime, names that begin with "__" are anybody's own; inputs and outputs that are left out at the
/// end do not count.
void check_signature(const Node& node, std::string_view signature);

}  // namespace headrace::onnx
