#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/model/model.h"

namespace headrace::llm {

/// What a context has read of a prompt, as it lies in a file.
struct PromptState {
    Tokens tokens;
    std::uint64_t variant = 0;        ///< see Sequences::acquire
    std::vector<std::uint8_t> bytes;  ///< llama.cpp's, of a sequence
};

/// owner: what the state depends on besides the tokens, such as the model and the cache's types; a file of
/// another owner is refused. Returns the bytes that were written. The file appears once it is whole.
Result<std::size_t> write_prompt_file(const std::string& path, std::uint64_t owner, const PromptState& state);
/// Bytes that its file has.
std::size_t prompt_file_size(const PromptState& state);
/// Errors: no such file; one that is no such file, of another model, or damaged.
Result<PromptState> read_prompt_file(const std::string& path, std::uint64_t owner);

}  // namespace headrace::llm
