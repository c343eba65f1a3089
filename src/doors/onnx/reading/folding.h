#pragma once
#include <optional>
#include <vector>

#include "doors/onnx/reading/elements.h"
#include "ir/op_def.h"

namespace headrace::onnx {

inline constexpr std::int64_t kMostFolded =
    4096;  ///< elements; more stay with the compiler, which folds, too

/// A call of an op of the catalog on operands that are all known or absent.
struct KnownCall {
    const OpDef& op;
    AttrBox box;
    const NamedAttrs& attrs;
    std::span<const Operand> operands;
};

/// A result that is known, and the type in which a graph stores it.
struct Folded {
    DType stored = DType::f32;
    Elements elements;
};

/// What is known, few elements, and given to a pure op is computed while the model is read: numbers by the
/// op's own reference kernel, extents by their arithmetic. So every operator that is made of ops folds by
/// itself. None where the op has to compute at run time. Errors: Refused for what inference or the kernel say
/// of numbers.
std::optional<std::vector<Folded>> folded(const KnownCall& call);

}  // namespace headrace::onnx
