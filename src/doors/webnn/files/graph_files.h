#pragma once
#include <string>

#include "base/result.h"
#include "ir/graph.h"

namespace headrace::webnn {

/// Where a `.webnn` or JSON graph has its weights; empty: `<stem>.manifest.json` and `<stem>.weights` beside
/// it. Not used for files that hold their own.
struct WeightPaths {
    std::string manifest;
    std::string weights;
};

/// Reads a graph file of any kind that this build knows: our own, which its content tells, `.webnn` text or
/// JSON. Errors start with the file's path and the place within it.
Result<Graph> read_graph_file(const std::string& path, const WeightPaths& paths = {});

/// Writes the kind that the extension says: `.webnn` and `.json` with the manifest and the weights beside
/// them if there are any, else our own. Each file appears under its name only when it is complete, so that a
/// graph whose weights are mapped from there can be saved there. Quantised: the matrices of products as q8_0
/// with quantize_graph(), which the WebNN graph tools' forms say in int8 and dequantizeLinear.
Status write_graph_file(const Graph& graph, const std::string& path, bool quantized = false);

}  // namespace headrace::webnn
