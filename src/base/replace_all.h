#pragma once
#include <string>
#include <string_view>

namespace headrace {

/// Puts `by` in place of each `what`, which is not empty. Whether there was any.
inline bool replace_all(std::string& text, std::string_view what, std::string_view by) {
    bool found = false;
    for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size(), found = true)
        text.replace(at, what.size(), by);
    return found;
}

}  // namespace headrace
