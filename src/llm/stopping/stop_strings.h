#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace::llm {

/// Looks for strings in a text that arrives byte by byte. The one that is complete first is found; of several
/// that are complete at the same byte, the longest.
class StopStrings {
public:
    static constexpr std::size_t kMaxCount = 1024;
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;  ///< of all together

    /// name: the setting's, for errors.
    static Result<StopStrings> create(const std::vector<std::string>& strings,
                                      std::string_view name = "stop");

    /// The string that this byte completes, by its position among the strings that are not empty.
    std::optional<std::size_t> feed(char byte);
    /// Whether a string is inside these bytes.
    bool is_inside(std::string_view bytes) const;
    /// Whether these bytes would complete a string that has begun, if they came next.
    bool would_complete(std::string_view bytes) const;
    bool empty() const { return searches_.empty(); }
    /// Bytes at the text's end that may be the start of a string.
    std::size_t held_back() const { return held_back_; }
    const std::string& string(std::size_t index) const { return searches_[index].string; }

private:
    /// The search of Knuth, Morris and Pratt.
    struct Search {
        std::string string;
        /// fallback[n]: bytes that remain matched when the byte after n matching ones differs.
        std::vector<std::uint32_t> fallback;
        std::size_t matched = 0;
    };
    std::vector<Search> searches_;
    std::size_t held_back_ = 0;
};

}  // namespace headrace::llm
