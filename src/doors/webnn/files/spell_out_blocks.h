#pragma once
#include "base/result.h"
#include "ir/graph.h"

namespace headrace::webnn {

/// The graph in WebNN's operators and types where quantize_graph() went beyond them: a matrix of q8_0 becomes
/// int8 elements and a dequantize_linear with a scale for every 32, and a fused_matmul that only multiplies
/// and adds a bias a gemm or matmul. Other block formats and fused nodes stay.
Result<Graph> spell_out_blocks(const Graph& graph);

}  // namespace headrace::webnn
