#pragma once
#include <string_view>

#include "doors/webnn/files/graph_source.h"

namespace headrace::webnn {

/// Reads the JSON form, versions 1 and 2 of "webnn-graph-json". Errors start with a path such as
/// nodes[3].options.
Result<GraphSource> parse_json(std::string_view text);

}  // namespace headrace::webnn
