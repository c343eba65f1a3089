#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/npy.h"
#include "headrace/headrace.h"

namespace headrace::cli {

/// Where a graph's inputs come from on the command line.
struct InputOptions {
    std::vector<std::string> files;   ///< "name=file.npy"
    std::vector<std::string> shapes;  ///< "name=1,16" for inputs with extents known only at run time
    unsigned seed = 0;                ///< of generated inputs
};

/// The inputs' shapes, in the graph's order.
struct InputShapes {
    std::vector<std::vector<std::int64_t>> shapes;
    std::map<std::size_t, Array> arrays;          ///< inputs that were read from files, by their place
    std::map<std::string, std::int64_t> made_up;  ///< open dimensions that nothing says: of a usual size
};
/// "x=x.npy"
Result<std::pair<std::string, std::string>> named_text(const std::string& text);
/// "x=1,16"
Result<std::pair<std::string, std::vector<std::int64_t>>> named_shape(const std::string& text);
/// The shapes of inputs that a file or an option gives one, before there is a graph.
Result<std::map<std::string, std::vector<std::int64_t>>> shapes_by_input(const InputOptions& options);

/// As files and options say, and as the graph has it; a dimension's name has one extent in all inputs.
Result<InputShapes> input_shapes(const Graph& graph, const InputOptions& options);
/// "note: ...", or nothing. is_onnx: dimensions can be given by their names, too.
std::string made_up_text(const Graph& graph, const InputShapes& inputs, bool is_onnx);

/// One array per input: from its file, as the input's dtype, or generated (floats in [-1, 1), integers 0 or
/// 1).
Result<std::vector<Array>> gather_inputs(const Graph& graph, InputShapes&& inputs, unsigned seed);

/// "float32[1, 16]: min -0.1, max 2, mean 0.3, first 1, 2, 3 ..."
std::string summarize(const Array& array);
/// The same as JSON.
nlohmann::json described(const Array& array);

}  // namespace headrace::cli
