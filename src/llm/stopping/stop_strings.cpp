#include "llm/stopping/stop_strings.h"

#include <algorithm>

#include "base/utf8.h"

namespace headrace::llm {
namespace {

/// For every count of matching bytes, the length of the longest proper end of them that starts the string,
/// too.
std::vector<std::uint32_t> fallbacks(const std::string& string) {
    std::vector<std::uint32_t> result(string.size(), 0);
    std::uint32_t border = 0;
    for (std::size_t i = 1; i < string.size(); ++i) {
        result[i] = border;
        while (border > 0 && string[i] != string[border]) border = result[border];
        if (string[i] == string[border]) ++border;
    }
    return result;
}

}  // namespace

Result<StopStrings> StopStrings::create(const std::vector<std::string>& strings, std::string_view name) {
    StopStrings result;
    std::size_t bytes = 0;
    for (const std::string& string : strings) {
        if (string.empty()) continue;
        bytes += string.size();
        if (result.searches_.size() == kMaxCount)
            return invalid("{}: more than {} strings; pass fewer, or a pattern in their place", name,
                           kMaxCount)
                .of_parameter(name);
        if (bytes > kMaxBytes)
            return invalid("{}: the strings have more than {} bytes together; pass fewer or shorter ones",
                           name, kMaxBytes)
                .of_parameter(name);
        if (const auto at = find_invalid_utf8(string))
            return invalid("{}: string {} is not valid UTF-8 from byte {} on", name, &string - strings.data(),
                           *at)
                .of_parameter(name);
        result.searches_.push_back({string, fallbacks(string)});
    }
    return result;
}

bool StopStrings::is_inside(std::string_view bytes) const {
    return std::any_of(searches_.begin(), searches_.end(), [&](const Search& search) {
        return bytes.find(search.string) != std::string_view::npos;
    });
}

bool StopStrings::would_complete(std::string_view bytes) const {
    for (const Search& search : searches_) {
        // Shorter beginnings need more bytes: none is left to try once there are too few.
        for (std::size_t begun = search.matched; begun > 0 && begun + bytes.size() >= search.string.size();
             begun = search.fallback[begun])
            if (bytes.starts_with(std::string_view(search.string).substr(begun))) return true;
    }
    return false;
}

std::optional<std::size_t> StopStrings::feed(char byte) {
    std::optional<std::size_t> found;
    held_back_ = 0;
    for (std::size_t i = 0; i < searches_.size(); ++i) {
        Search& search = searches_[i];
        while (search.matched > 0 && search.string[search.matched] != byte)
            search.matched = search.fallback[search.matched];
        if (search.string[search.matched] == byte) ++search.matched;
        held_back_ = std::max(held_back_, search.matched);
        const bool is_complete = search.matched == search.string.size();
        if (is_complete && (!found || search.matched > searches_[*found].string.size())) found = i;
    }
    return found;
}

}  // namespace headrace::llm
