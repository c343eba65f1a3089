#pragma once
#include <llama.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace::llm {

using Tokens = std::vector<llama_token>;

// A prompt's image stands among its tokens as negative ones, which no text has: numbers of what the image
// shows, so that prompts with one image have equal tokens there, and others have not. The two highest bits
// say whether the token takes a position of its own (in models whose positions have several dimensions most
// of an image's tokens do not), the third one that an image begins.
namespace image_token {
constexpr std::uint32_t kImage = 1u << 31, kStays = 1u << 30, kBegins = 1u << 29;
}

inline bool is_image_token(llama_token token) { return token < 0; }
inline bool begins_image(llama_token token) {
    return is_image_token(token) && (static_cast<std::uint32_t>(token) & image_token::kBegins) != 0;
}

/// An image's tokens. digest: 64 hexadecimal digits of what they are computed from. positions: that they
/// take.
Tokens image_tokens(std::string_view digest, std::size_t count, std::size_t positions);

/// The position of the token with that index, or of what comes after the last one: an index that does not lie
/// within an image.
inline std::size_t position_of(const Tokens& tokens, std::size_t index) {
    const std::size_t known = std::min(index, tokens.size());
    const auto staying = std::count_if(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(known),
                                       [](llama_token token) { return (token >> 30) == -1; });
    return index - static_cast<std::size_t>(staying);
}

/// That size, or less, so that no image is cut which goes on behind it: with `tokens`.
std::size_t without_cut_image(const Tokens& tokens, std::size_t size);

inline bool has_images(const Tokens& tokens) {
    return std::any_of(tokens.begin(), tokens.end(), is_image_token);
}

}  // namespace headrace::llm
