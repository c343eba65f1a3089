#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// The reader of stored blocks of prompts.
Target block_file_target();

}  // namespace headrace::fuzz
