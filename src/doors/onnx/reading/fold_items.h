#pragma once
#include <optional>
#include <vector>

#include "doors/onnx/reading/folding.h"

namespace headrace::onnx {

/// folded() where some elements are no numbers. Ops that only move elements do so with their places, by the
/// reference kernel; others are arithmetic of items, one by one.
std::optional<std::vector<Folded>> folded_items(const KnownCall& call);

}  // namespace headrace::onnx
