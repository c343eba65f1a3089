#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// "delegate": the blobs that ExecuTorch hands to our delegate, and the weights that they name.
Target delegate_target();

}  // namespace headrace::fuzz
