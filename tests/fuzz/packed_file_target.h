#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// "packed": files of packed weights.
Target packed_file_target();

}  // namespace headrace::fuzz
