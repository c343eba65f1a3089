#pragma once
#include <span>

#include "ir/graph_builder.h"

namespace headrace::webnn {

/// What the specification demands of an operator beyond the catalog's op, which takes more for the other
/// doors: ONNX and PyTorch have pools that are rounded down along one axis and up along the other, and
/// indices that reach only a part of the input. Graph files may hold what those doors have built, so it holds
/// for builders.
Status check_rules(const GraphBuilder& builder, const OpDef& def, std::span<const ValueId> operands,
                   const NamedAttrs& attrs);

}  // namespace headrace::webnn
