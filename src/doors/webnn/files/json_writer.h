#pragma once
#include <string>

#include "doors/webnn/files/graph_source.h"

namespace headrace::webnn {

/// The JSON form of a source, a line per input, constant, node and output. Errors: a name that is not UTF-8.
Result<std::string> write_json(const GraphSource& source);

}  // namespace headrace::webnn
