#include "encoder/waiting_texts.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace headrace {
namespace {

/// How many texts runs have: with any number there would be more plans than are worth keeping.
constexpr std::array<std::size_t, 11> kCounts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64};

/// The largest of these that is not above.
std::size_t usual_count(std::size_t most) { return *std::prev(std::ranges::upper_bound(kCounts, most)); }

/// How many texts of that length a run has at most.
std::size_t room(std::int64_t length) {
    return usual_count(
        static_cast<std::size_t>(std::max<std::int64_t>(WaitingTexts::kMostTokens / length, 1)));
}

}  // namespace

void WaitingTexts::add(std::int64_t length, WaitingText text) {
    std::deque<WaitingText>& all = by_length_[std::max<std::int64_t>(length, 1)];
    auto place = all.end();
    while (place != all.begin() && std::prev(place)->turn > text.turn) --place;
    all.insert(place, std::move(text));
    ++size_;
}

WaitingTexts::Lengths::iterator WaitingTexts::first_in_turn() {
    return std::ranges::min_element(by_length_, {},
                                    [](const auto& entry) { return entry.second.front().turn; });
}

std::vector<WaitingTexts::Part> WaitingTexts::choose() {
    auto shortest = first_in_turn(), longest = shortest;
    std::size_t count = std::min(shortest->second.size(), room(longest->first));
    std::vector<Part> parts = {{shortest, count}};
    const auto add = [&](Lengths::iterator place) {
        const std::size_t most = room(std::max(place->first, longest->first));
        const std::size_t more = std::min(place->second.size(), most > count ? most - count : 0);
        if (more > 0) parts.push_back({place, more});
        count += more;
        return more > 0;
    };
    while (shortest != by_length_.begin()) {
        const auto next = std::prev(shortest);
        if (longest->first - next->first > kRunTokens || !add(next)) break;
        shortest = next;
    }
    for (auto next = std::next(longest); next != by_length_.end(); next = std::next(longest)) {
        const auto padding = static_cast<std::int64_t>(count) * (next->first - longest->first);
        if (padding > kRunTokens || !add(next)) break;
        longest = next;
    }
    // The first part has the text whose turn it is, and keeps it.
    for (std::size_t surplus = count - usual_count(count); surplus > 0; parts.pop_back()) {
        const std::size_t less = std::min(surplus, parts.back().count - (parts.size() == 1));
        parts.back().count -= less;
        surplus -= less;
        if (parts.back().count > 0) break;
    }
    return parts;
}

std::vector<WaitingText> WaitingTexts::take() {
    std::vector<WaitingText> texts;
    if (size_ == 0) return texts;
    for (const Part& part : choose()) {
        std::deque<WaitingText>& all = part.place->second;
        const auto end = all.begin() + static_cast<std::ptrdiff_t>(part.count);
        std::move(all.begin(), end, std::back_inserter(texts));
        all.erase(all.begin(), end);
        if (all.empty()) by_length_.erase(part.place);
    }
    turn_ = std::max(turn_, texts.front().turn);
    size_ -= texts.size();
    return texts;
}

void WaitingTexts::remove_if(const std::function<bool(const WaitingText&)>& is) {
    for (auto at = by_length_.begin(); at != by_length_.end();) {
        size_ -= std::erase_if(at->second, is);
        at = at->second.empty() ? by_length_.erase(at) : std::next(at);
    }
}

std::int64_t run_length(std::int64_t tokens, std::int64_t most) {
    const std::int64_t step = tokens <= 32    ? 1
                              : tokens <= 64  ? 2
                              : tokens <= 128 ? 4
                              : tokens <= 256 ? 8
                                              : 16;
    return std::min((tokens + step - 1) / step * step, std::max(most, tokens));
}

}  // namespace headrace
