#include "llm/images/image_tokens.h"

#include <array>
#include <charconv>

namespace headrace::llm {

Tokens image_tokens(std::string_view digest, std::size_t count, std::size_t positions) {
    std::array<std::uint32_t, 8> words{};
    for (std::size_t i = 0; i < words.size() && 8 * (i + 1) <= digest.size(); ++i)
        std::from_chars(digest.data() + 8 * i, digest.data() + 8 * (i + 1), words[i], 16);
    Tokens tokens;
    for (std::size_t i = 0; i < count; ++i) {
        constexpr std::uint32_t kStep = 0x9E3779B9;  // another number each time a word comes again
        std::uint32_t bits = words[i % words.size()] + kStep * static_cast<std::uint32_t>(i);
        bits &= image_token::kBegins - 1;
        bits |= image_token::kImage;
        if (i == 0) bits |= image_token::kBegins;
        if (i >= positions) bits |= image_token::kStays;
        tokens.push_back(static_cast<llama_token>(bits));
    }
    return tokens;
}

std::size_t without_cut_image(const Tokens& tokens, std::size_t size) {
    if (size >= tokens.size()) return size;
    while (size > 0 && is_image_token(tokens[size]) && !begins_image(tokens[size])) --size;
    return size;
}

}  // namespace headrace::llm
