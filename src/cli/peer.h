#pragma once
#include "cli/bench.h"

namespace headrace::cli {

/// Runs python/headrace/_cli/compare_onnxruntime.py on the same graph: true when it printed its table, false
/// when it had nothing to compare with and said why.
Result<bool> compare_with_peer(const BenchOptions& options);

}  // namespace headrace::cli
