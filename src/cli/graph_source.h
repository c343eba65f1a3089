#pragma once
#include <string>

#include "cli/commands.h"
#include "ir/graph.h"

namespace headrace::cli {

/// Whether a file's name says that it is an ONNX model.
bool is_onnx_file(std::string_view path);

/// The graph of run, bench, inspect and convert: a graph file, or an ONNX model.
Result<Graph> read_graph_or_model(const GraphOptions& options);

}  // namespace headrace::cli
