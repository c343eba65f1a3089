#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace headrace {

/// Bytes of the name that a text of an expression starts with: letters, digits, _ . : and bytes above 127,
/// not a digit first; hyphens between words ("batch-size", but not "n-1"); and the parentheses of a call.
std::size_t word_length(std::string_view text);

/// Whether all of a text is one name.
bool is_word(std::string_view text);

/// Whether it ends as what `shortened` makes does.
bool is_cut(std::string_view text);

/// Within quotes, with each quote in it twice.
std::string quoted(std::string_view name);

/// A name as a text by itself that is read as that name: as it is, or within quotes.
std::string spelled(std::string_view name);

/// The name that is spelled so.
std::string name_spelled(std::string_view text);

}  // namespace headrace
