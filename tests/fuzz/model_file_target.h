#pragma once
#include "fuzz/fuzz.h"

namespace headrace::fuzz {

/// Language models: sound files' headers, damaged in their metadata and tensors. What passes our checks is
/// loaded and asked something in a child process; the target throws when that child is ended by a signal.
/// Reads the chat model of that path. Call it before threads start.
Target model_file_target(const std::string& chat_model);

}  // namespace headrace::fuzz
