#pragma once
#include <string>

#include "cli/operands.h"
#include "doors/webnn/files/graph_files.h"
#include "headrace/headrace.h"

namespace headrace::cli {

/// What run, bench and inspect share.
struct GraphOptions {
    std::string graph;
    std::vector<std::string> dimensions;  ///< "name=4": only ONNX models have them
    webnn::WeightPaths weights;
    CompileOptions compile;
    std::int64_t most_iterations = RunOptions().most_iterations;
    InputOptions inputs;
};

struct RunArguments : GraphOptions {
    std::vector<std::string> outputs;  ///< "name=file.npy"
};
struct BenchOptions : GraphOptions {
    int runs = 50, warmup = 5;  ///< alone
    int rounds = 10;            ///< in alternation with the peer
    double seconds = 0.2;       ///< of a round of each
    std::string json;
    bool profile = false;       ///< time per node instead
    bool tune = false;          ///< measure the ways to run each node, and keep the fastest
    std::string peer = "auto";  ///< "auto": ONNX Runtime if there is one; "none"; "onnxruntime": or fail
};
struct ConvertOptions : GraphOptions {
    std::string output;  ///< graph file to write; the extension chooses the form
};
struct InspectOptions : GraphOptions {
    bool before = false;
    std::string svg;  ///< file for a drawing of the graph
};

/// Each prints to standard output and returns an error that main reports.
/// hosts: rpc://host:port of remote ones to ask, too.
Status list_all_devices(const std::vector<std::string>& hosts);
/// The op catalog; with `webnn`, which of WebNN's operators have which implementation.
Status list_ops(bool webnn);
Status run_graph(const RunArguments& options);
/// Beside ONNX Runtime, in alternation, where Python has it and the graph can be exported; else alone. With
/// `profile` each node's time, and how much of the machine's limits it reaches; with `tune` what other ways
/// to run nodes gain.
Status bench_graph(const BenchOptions& options);
Status inspect_graph(const InspectOptions& options);
/// Writes an ONNX model as a graph file.
Status convert_model(const ConvertOptions& options);

}  // namespace headrace::cli
