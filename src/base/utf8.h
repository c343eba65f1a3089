#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace headrace {

/// Offset of the first byte that is not part of valid UTF-8 (RFC 3629: no overlong forms, no surrogates).
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// The text with U+FFFD in the place of bytes that are not part of valid UTF-8.
std::string valid_utf8(std::string_view text);

/// The most bytes, at most size, that end between two characters.
std::size_t utf8_boundary(std::string_view text, std::size_t size);

struct CodePoint {
    char32_t value = 0;    ///< U+FFFD where the bytes are malformed
    std::size_t size = 0;  ///< bytes; of malformed ones those that a single U+FFFD stands for
    bool is_valid = false;
};

/// For messages: long texts are cut between two characters.
std::string excerpt(std::string_view text, std::size_t most = 60);

/// What `text` starts with; none where it is empty or ends within a character that more bytes may complete.
std::optional<CodePoint> first_code_point(std::string_view text);

}  // namespace headrace
