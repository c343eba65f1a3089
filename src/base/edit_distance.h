#pragma once
#include <cstddef>
#include <string_view>

namespace headrace {

/// Insertions, deletions, substitutions and swaps of neighbours between two names; `limit` when more.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

}  // namespace headrace
