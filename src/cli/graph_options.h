#pragma once
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cli/operands.h"
#include "doors/webnn/files/graph_files.h"
#include "headrace/headrace.h"
#include "ir/graph.h"
#include "ir/graph_file.h"

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

void add_graph_options(CLI::App& command, GraphOptions& options);
/// --dimension, which convert has, too.
void add_dimension_option(CLI::App& command, std::vector<std::string>& dimensions);
/// --weight-format, alike.
void add_weight_format_option(CLI::App& command, WeightFormat& format);

/// Checks that a number is not smaller.
CLI::Validator at_least(int least);

/// A graph file, or an ONNX model; one that cannot be read with open dimensions by the shapes that its inputs
/// are given.
Result<Graph> read_graph_or_model(const GraphOptions& options);

}  // namespace headrace::cli
