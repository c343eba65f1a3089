#include "base/utf8.h"

#include <cstdint>

namespace headrace {
namespace {

/// Bytes of the code point that starts `text`; 0 when it is malformed.
std::size_t code_point_size(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint8_t lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
    if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
    if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
    return size;
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t size = code_point_size(text.substr(at));
        if (size == 0) return at;
        at += size;
    }
    return std::nullopt;
}

std::size_t utf8_boundary(std::string_view text, std::size_t size) {
    if (size >= text.size()) return text.size();
    // A continuation byte has the bits 10 at its top.
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
    return size;
}

}  // namespace headrace
