#pragma once
#include <map>
#include <string>
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
/// As files and options say, and as the graph has it; a dimension's name has one extent in all inputs.
Result<InputShapes> input_shapes(const Graph& graph, const InputOptions& options);
/// "seq = 16: made up; ...", or nothing.
std::string made_up_text(const InputShapes& inputs);

/// One array per input: from its file, or generated (floats in [-1, 1), integers 0 or 1).
Result<std::vector<Array>> gather_inputs(const Graph& graph, InputShapes&& inputs, unsigned seed);

/// "float32[1, 16]: min -0.1, max 2, mean 0.3, first 1, 2, 3 ..."
std::string summarize(const Array& array);
/// The same as JSON.
nlohmann::json described(const Array& array);

}  // namespace headrace::cli
