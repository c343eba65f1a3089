#pragma once
#include <cstddef>
#include <memory>
#include <optional>

#include "base/content_hash.h"
#include "base/result.h"
#include "llm/blocks/block_folder.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Where an engine's prompts are stored, and what its blocks depend on.
struct BlockStore {
    std::shared_ptr<BlockFolder> folder;
    ContentHash model;
    std::size_t block_size = 0;    ///< tokens
    std::optional<Error> problem;  ///< why nothing can be written at the moment
};

/// The store; none where the settings name no folder, or where the model's memory cannot be taken apart
/// (logged).
std::optional<BlockStore> open_block_store(const Model& model, const EngineSettings& settings);

/// Tokens of the blocks that a context's memory can be stored in. Errors: it cannot be taken apart, with the
/// reason.
Result<std::size_t> block_size(const Model& model, const EngineSettings& settings);

/// What keys and values of a model depend on, whichever text they are of: the contents of its files, the
/// versions of what computes, and every parameter that is not known to leave them as they are. folder: which
/// remembers the hashes of files. Errors: a file cannot be read.
Result<ContentHash> block_model(const Model& model, const EngineSettings& settings,
                                const std::string& folder);

}  // namespace headrace::llm
