#pragma once
#include <algorithm>
#include <string_view>

namespace headrace {

/// Removes and returns what comes before the separator, which goes with it; all of the text where there is
/// none.
inline std::string_view take_until(std::string_view& text, char separator) {
    const std::string_view first = text.substr(0, text.find(separator));
    text.remove_prefix(std::min(text.size(), first.size() + 1));
    return first;
}

}  // namespace headrace
