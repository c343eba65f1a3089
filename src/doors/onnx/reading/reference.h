#pragma once
#include <optional>
#include <span>
#include <vector>

#include "doors/onnx/reading/folding.h"
#include "ir/op_def.h"

namespace headrace::onnx {

/// An operand of a kernel; without bytes: an absent one.
struct ReferenceOperand {
    TensorType type;
    std::optional<std::span<const std::byte>> bytes;
};

/// The type in which a graph stores an operand of known elements.
TensorType stored_type(const Operand& x);

/// What an op's reference kernel computes. None where the results are more than `most` elements, or of open
/// extents. Errors: Refused with what inference or the kernel say.
std::optional<std::vector<Folded>> by_reference(const OpDef& op, const AttrBox& attrs,
                                                std::span<const ReferenceOperand> operands,
                                                std::int64_t most);

/// The types that the op infers for its results. Errors: Refused.
std::vector<TensorType> inferred(const OpDef& op, const AttrBox& attrs,
                                 std::span<const ReferenceOperand> operands);

}  // namespace headrace::onnx
