#pragma once
#include <vector>

#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// "graph" (our own files), "text" and "json".
std::vector<Target> graph_file_targets();

}  // namespace headrace::fuzz
