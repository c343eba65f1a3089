#pragma once
#include <functional>

#include "doors/onnx/reading/bodies.h"
#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// Makes a branch's nodes.
using BuildBranch = std::function<Results(Body&)>;

/// The op if: the results of one of two branches, as a truth value at run time has it. Both have as many, of
/// the same types and numbers of dimensions.
Results one_of(OpWriter& g, const Operand& condition, const BuildBranch& yes, const BuildBranch& no);

}  // namespace headrace::onnx
