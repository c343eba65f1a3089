#pragma once
#include <llama.h>

#include "base/result.h"
#include "llm/model/model.h"

namespace headrace::llm {

/// Bytes of the keys and values of a context on the host; 0 where a model's kind of memory is not known here.
std::uint64_t context_bytes(const Model& model, const llama_context_params& params);

/// As many of its tokens as half of the memory that is available has room for, at least one step of
/// llama.cpp's.
std::uint32_t most_context_tokens(const Model& model, const llama_context_params& params);

/// Refuses a context that the machine has no memory for. Linux would grant it, and end the process once it is
/// used.
Status enough_memory_for_context(const Model& model, const llama_context_params& params);

}  // namespace headrace::llm
