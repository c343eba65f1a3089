#pragma once
#include "cli/bench.h"

namespace headrace::cli {

/// `headrace bench --tune`: what other ways to run nodes gain, kept for later starts.
Status tune_graph(const BenchOptions& options);

}  // namespace headrace::cli
