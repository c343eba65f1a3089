#pragma once
#include <span>
#include <vector>

#include "base/result.h"
#include "doors/onnx/model/messages.h"

namespace headrace::onnx {

/// A graph's nodes so that each lies behind those that compute what it and its bodies read, otherwise as they
/// were. ONNX demands that order, but tools that add nodes at the end write files without it, which other
/// runtimes take.
/// Errors: those of decode_node() and decode_graph(); nodes that wait for one another.
Result<std::vector<Bytes>> in_order(std::span<const Bytes> nodes);

}  // namespace headrace::onnx
