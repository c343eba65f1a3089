#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// "onnx": models, as they are opened and read. The sound ones are those of build/fuzz/onnx, which
/// `tests/onnx/model_fuzz.py --write` makes of every operator; a few without that folder.
Target onnx_target();

}  // namespace headrace::fuzz
