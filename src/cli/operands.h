#pragma once
#include <map>
#include <string>
#include <vector>

#include "cli/npy.h"
#include "headrace/headrace.h"

namespace headrace::cli {

/// Where a graph's inputs come from on the command line.
struct InputOptions {
    std::vector<std::string> files;   ///< "name=file.npy"
    std::vector<std::string> shapes;  ///< "name=1,16" for inputs with extents known only at run time
    unsigned seed = 0;                ///< of generated inputs
};

/// One array per input, in graph order: from its file, or generated (floats in [-1, 1), integers 0 or 1).
Result<std::vector<Array>> gather_inputs(const std::vector<TensorInfo>& infos, const InputOptions& options);

/// "float32[1, 16]: min -0.1, max 2, mean 0.3, first 1, 2, 3 ..."
std::string summarise(const Array& array);

/// "f32[1, seq]"
std::string type_text(const TensorInfo& info);

}  // namespace headrace::cli
