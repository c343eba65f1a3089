#include "llm/engine/prompt_file.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "base/content_hash.h"
#include "base/new_files.h"

namespace headrace::llm {
namespace {

constexpr std::array<char, 8> kMagic = {'H', 'R', 'P', 'R', 'O', 'M', 'P', '1'};

struct PromptHeader {
    std::array<char, 8> magic = kMagic;
    std::uint64_t owner = 0, variant = 0, tokens = 0, bytes = 0;
    ContentHash hash;  // of all that follows
};

std::vector<std::uint8_t> body_of(const PromptState& state) {
    const std::size_t tokens = state.tokens.size() * sizeof(llama_token);
    std::vector<std::uint8_t> body(tokens + state.bytes.size());
    if (tokens > 0) std::memcpy(body.data(), state.tokens.data(), tokens);
    if (!state.bytes.empty()) std::memcpy(body.data() + tokens, state.bytes.data(), state.bytes.size());
    return body;
}

}  // namespace

Result<std::size_t> write_prompt_file(const std::string& path, std::uint64_t owner,
                                      const PromptState& state) {
    const std::vector<std::uint8_t> body = body_of(state);
    const PromptHeader header{.owner = owner,
                              .variant = state.variant,
                              .tokens = state.tokens.size(),
                              .bytes = state.bytes.size(),
                              .hash = content_hash(body.data(), body.size())};
    NewFiles files;
    HR_TRY(files.write(path, [&](std::ostream& out) -> Status {
        out.write(reinterpret_cast<const char*>(&header), sizeof(header));
        out.write(reinterpret_cast<const char*>(body.data()), static_cast<std::streamsize>(body.size()));
        return success();
    }));
    HR_TRY(files.finish());
    return prompt_file_size(state);
}

std::size_t prompt_file_size(const PromptState& state) {
    return sizeof(PromptHeader) + state.tokens.size() * sizeof(llama_token) + state.bytes.size();
}

Result<PromptState> read_prompt_file(const std::string& path, std::uint64_t owner) {
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    std::ifstream file(path, std::ios::binary);
    if (error || !file) return failure(Code::not_found, "{}: there is no such file", path);
    PromptHeader header;
    file.read(reinterpret_cast<char*>(&header), sizeof(header));
    if (!file || header.magic != kMagic) return invalid("{}: it is no file of a saved prompt", path);
    if (header.owner != owner)
        return invalid("{}: it was saved by another model, or with other adapters or another cache", path);
    const std::uintmax_t left = size - sizeof(header);
    if (header.tokens > left / sizeof(llama_token) ||
        header.bytes != left - header.tokens * sizeof(llama_token))
        return invalid("{}: it is cut off or damaged", path);
    std::vector<std::uint8_t> body(static_cast<std::size_t>(left));
    file.read(reinterpret_cast<char*>(body.data()), static_cast<std::streamsize>(body.size()));
    if (!file || content_hash(body.data(), body.size()) != header.hash)
        return invalid("{}: it is damaged: its checksum is another", path);
    PromptState state{.tokens = Tokens(static_cast<std::size_t>(header.tokens)), .variant = header.variant};
    const std::size_t bytes = state.tokens.size() * sizeof(llama_token);
    if (bytes > 0) std::memcpy(state.tokens.data(), body.data(), bytes);
    state.bytes.assign(body.begin() + static_cast<std::ptrdiff_t>(bytes), body.end());
    return state;
}

}  // namespace headrace::llm
