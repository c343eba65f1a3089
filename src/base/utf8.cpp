#include "base/utf8.h"

#include <cstdint>

namespace headrace {
namespace {

/// Bytes of the character that this byte leads; 0 when it leads none.
std::size_t size_by_lead(std::uint8_t lead) {
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    return lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
}

/// Whether this byte may follow that lead; the range excludes overlong forms, surrogates and what lies above
/// U+10FFFF.
bool may_be_second(std::uint8_t lead, std::uint8_t second) {
    const std::uint8_t first = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t last = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    return second >= first && second <= last;
}

}  // namespace

std::optional<CodePoint> first_code_point(std::string_view text) {
    if (text.empty()) return std::nullopt;
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const CodePoint malformed{.value = 0xFFFD, .size = 1};
    const std::size_t size = size_by_lead(byte(0));
    if (size == 0) return malformed;
    if (size == 1) return CodePoint{.value = byte(0), .size = 1, .is_valid = true};
    char32_t value = byte(0) & (0x7Fu >> size);
    for (std::size_t i = 1; i < size; ++i) {
        if (i == text.size()) return std::nullopt;
        const bool fits = i == 1 ? may_be_second(byte(0), byte(1)) : (byte(i) & 0xC0) == 0x80;
        if (!fits) return CodePoint{.value = malformed.value, .size = i};
        value = value << 6 | (byte(i) & 0x3Fu);
    }
    return CodePoint{.value = value, .size = size, .is_valid = true};
}

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::optional<CodePoint> point = first_code_point(text.substr(at));
        if (!point || !point->is_valid) return at;
        at += point->size;
    }
    return std::nullopt;
}

std::string valid_utf8(std::string_view text) {
    std::string valid;
    while (!text.empty()) {
        const std::optional<CodePoint> point = first_code_point(text);
        const std::size_t size = point ? point->size : text.size();  // the end cuts a character off
        valid += point && point->is_valid ? text.substr(0, size) : "\xEF\xBF\xBD";
        text.remove_prefix(size);
    }
    return valid;
}

std::size_t utf8_boundary(std::string_view text, std::size_t size) {
    if (size >= text.size()) return text.size();
    // A continuation byte has the bits 10 at its top.
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    return size;
}

std::string excerpt(std::string_view text, std::size_t most) {
    if (text.size() <= most) return std::string(text);
    return std::string(text.substr(0, utf8_boundary(text, most))) + "...";
}

}  // namespace headrace
