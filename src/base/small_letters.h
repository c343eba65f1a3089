#pragma once
#include <string>
#include <string_view>

namespace headrace {

/// ASCII's capitals as small letters, whatever the locale; others as they are.
constexpr char small_letter(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string in_small_letters(std::string_view text) {
    std::string made(text);
    for (char& c : made) c = small_letter(c);
    return made;
}

}  // namespace headrace
