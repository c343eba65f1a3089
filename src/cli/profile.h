#pragma once
#include <vector>

#include "cli/bench.h"
#include "headrace/headrace.h"
#include "kernels/simd/machine_limits.h"

namespace headrace::cli {

/// A node's share of a run and of what the machine can do.
struct NodeProfile {
    std::string title, implementation;
    double us = 0;             ///< median of the runs
    double share = 0;          ///< of all nodes' time
    double mflop = 0, mb = 0;  ///< of multiplications as written, and of all operands and results
    double gflops = 0, gb_per_s = 0;
    double limit = 0;  ///< the larger fraction: of the FMA limit, or of the read limit
};

/// One row a node, those that take longest first. `runs` are the statistics of profiled runs of one session.
std::vector<NodeProfile> profile_nodes(const std::vector<RunStats>& runs,
                                       const kernels::MachineLimits& limits);

/// `headrace bench --profile`: the nodes that take longest, and the time by implementation.
Status profile_graph(const BenchOptions& options);

}  // namespace headrace::cli
