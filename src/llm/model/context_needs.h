#pragma once
#include <cstdint>
#include <string>

#include <llama.h>

#include "base/result.h"
#include "llm/checks/model_file.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Bytes that a model's context takes beside the weights.
struct ContextNeeds {
    std::uint64_t cache = 0;    ///< of all layers: keys and values, or states
    std::uint64_t compute = 0;  ///< on each device, whatever share of the layers it has: at most so many
    std::uint64_t cells = 0;    ///< on this machine: what is known of each token's place
};

/// What llama.cpp would allocate for the context that these settings make of a model; nothing is allocated,
/// and of a file that it cannot load nothing is known. One call at a time: it changes the global logger.
ContextNeeds measure_context(const std::string& path, const ModelFile& file, const ContextMemory& settings);

}  // namespace headrace::llm
