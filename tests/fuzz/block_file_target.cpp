#include "fuzz/block_file_target.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "fuzz/mutate.h"
#include "llm/blocks/block_file.h"

namespace headrace::fuzz {
namespace {

using llm::BlockOrigin;

const BlockOrigin kOrigin{.model = {11, 12}, .variant = 13, .size = 16};

/// The text and the state that a file of so many blocks has, so that what is read can be checked.
std::vector<std::int32_t> text_of(std::size_t blocks) {
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < blocks * kOrigin.size; ++i) tokens.push_back(static_cast<std::int32_t>(i));
    return tokens;
}
std::string state_of(std::size_t blocks) {
    return std::string(blocks * 100, static_cast<char>('a' + blocks));
}

std::string block_with(std::size_t blocks) {
    const std::string state = state_of(blocks);
    const auto head = llm::block_head(kOrigin, text_of(blocks), {std::as_bytes(std::span(state)), 1.5});
    return std::string(reinterpret_cast<const char*>(head.data()), head.size()) + state;
}

bool load_block(const Parts& parts) {
    // In memory of exactly its size, so that a sanitizer sees what is read beyond it.
    const std::size_t size = parts[0].size();
    const std::unique_ptr<std::byte[]> copy(new std::byte[size]);
    std::memcpy(copy.get(), parts[0].data(), size);
    bool accepted = false;
    for (std::size_t blocks = 0; blocks <= 4; ++blocks) {
        const auto block = llm::read_block({copy.get(), size}, kOrigin, text_of(blocks));
        if (!block.ok()) {
            if (block.error().message.empty()) throw std::logic_error("an error without a message");
            continue;
        }
        const std::string state = state_of(blocks);
        if (block.value().state.size() != state.size() ||
            std::memcmp(block.value().state.data(), state.data(), state.size()) != 0)
            throw std::logic_error("a damaged block was accepted");
        accepted = true;
    }
    return accepted;
}

}  // namespace

Target block_file_target() {
    Target target{"blocks", {}, {"HRBLOCK1"}, load_block};
    for (std::size_t blocks = 0; blocks <= 4; ++blocks) target.corpus.push_back({block_with(blocks)});
    target.mutate = [corpus = target.corpus](const Parts& parts, Mutator& mutator) {
        if (mutator.below(50) == 0) return parts;  // sound ones are read all the same
        return Parts{mutator.mutate(parts[0], corpus[mutator.below(corpus.size())][0], {"HRBLOCK1"})};
    };
    return target;
}

}  // namespace headrace::fuzz
