#include "llm/stopping/character_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace headrace::llm {

CharacterSet::CharacterSet(std::vector<Range> ranges) {
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.first < b.first; });
    for (const Range& range : ranges) {
        if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
            ranges_.back().last = std::max(ranges_.back().last, range.last);
        else
            ranges_.push_back(range);
    }
    for (const Range& range : ranges_)
        for (char32_t c = range.first; c <= range.last && c < ascii_.size(); ++c) ascii_[c] = true;
}

bool CharacterSet::contains(char32_t c) const {
    if (c < ascii_.size()) return ascii_[c];
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), c,
                         [](char32_t value, const Range& range) { return value < range.first; });
    return after != ranges_.begin() && c <= std::prev(after)->last;
}

CharacterSet CharacterSet::complement() const {
    std::vector<Range> gaps;
    char32_t next = 0;
    for (const Range& range : ranges_) {
        if (range.first > next) gaps.push_back({next, range.first - 1});
        next = range.last + 1;
    }
    if (next <= 0x10FFFF) gaps.push_back({next, 0x10FFFF});
    return CharacterSet(std::move(gaps));
}

}  // namespace headrace::llm
