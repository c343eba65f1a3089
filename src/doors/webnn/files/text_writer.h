#pragma once
#include <string>

#include "doors/webnn/files/graph_source.h"

namespace headrace::webnn {

/// The `.webnn` text of a source. Errors: an input or output whose name the format cannot spell.
Result<std::string> write_text(const GraphSource& source);

}  // namespace headrace::webnn
