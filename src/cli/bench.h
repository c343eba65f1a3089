#pragma once
#include "cli/graph_options.h"
#include "cli/report.h"

namespace headrace::cli {

struct BenchOptions : GraphOptions {
    int runs = 50, warmup = 5;  ///< alone
    int rounds = 10;            ///< in alternation with the peer
    double seconds = 0.2;       ///< of a round of each
    JsonOption json;
    bool profile = false;       ///< time per node instead
    bool tune = false;          ///< measure the ways to run each node, and keep the fastest
    std::string peer = "auto";  ///< "auto": ONNX Runtime if there is one; "none"; "onnxruntime": or fail
};

}  // namespace headrace::cli
