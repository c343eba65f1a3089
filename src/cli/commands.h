#pragma once
#include <string>

#include "cli/operands.h"
#include "headrace/headrace.h"

namespace headrace::cli {

/// What run, bench and inspect share.
struct GraphOptions {
    std::string graph;
    CompileOptions compile;
    InputOptions inputs;
};

struct RunOptions : GraphOptions {
    std::vector<std::string> outputs;  ///< "name=file.npy"
};
struct BenchOptions : GraphOptions {
    int runs = 50;
    int warmup = 5;
    std::string json;
};
struct InspectOptions : GraphOptions {
    bool before = false;
};

/// Each prints to standard output and returns an error that main reports.
Status list_all_devices();
/// The op catalog; with `webnn`, which of WebNN's operators have which implementation.
Status list_ops(bool webnn);
Status run_graph(const RunOptions& options);
Status bench_graph(const BenchOptions& options);
Status inspect_graph(const InspectOptions& options);

}  // namespace headrace::cli
