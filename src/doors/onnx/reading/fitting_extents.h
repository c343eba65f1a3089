#pragma once
#include <span>
#include <string>
#include <utility>

#include "doors/onnx/reading/refused.h"
#include "ir/op_def.h"
#include "ir/tensor_type.h"

namespace headrace::onnx {

/// A node that cannot be expressed whatever numbers its open extents are.
class RefusedForAllExtents : public Refused {
public:
    using Refused::Refused;
};

/// Throws why an op refuses its operands (null: left out). Whether numbers for open extents might help is
/// found by those that the operands have elsewhere; not of one operand, whose attributes may have open
/// extents, too.
[[noreturn]] void refuse_operands(const OpDef& op, const AttrBox& attrs,
                                  std::span<const TensorType* const> operands, const Error& error);

}  // namespace headrace::onnx
