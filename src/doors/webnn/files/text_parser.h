#pragma once
#include <string_view>

#include "doors/webnn/files/graph_source.h"

namespace headrace::webnn {

/// Parses the `.webnn` text form, versions 1 and 2 (https://github.com/tarekziade/webnn-graph). `text` must
/// outlive the result's `place`. Errors start with line:column.
Result<GraphSource> parse_text(std::string_view text);

}  // namespace headrace::webnn
