#pragma once
#include <cstddef>
#include <string_view>

namespace headrace {

/// Bytes of the name that a text of an expression starts with: letters, digits, _ . : and bytes above 127,
/// not a digit first; hyphens between words ("batch-size", but not "n-1"); and the parentheses of a call.
std::size_t word_length(std::string_view text);

/// Whether all of a text is one name.
bool is_word(std::string_view text);

}  // namespace headrace
