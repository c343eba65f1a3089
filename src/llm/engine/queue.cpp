#include "llm/engine/queue.h"

#include <algorithm>
#include <utility>

namespace headrace::llm {

void Queue::add(std::uint64_t id, Priority priority, std::string owner, Clock::time_point now) {
    const int level = static_cast<int>(priority);
    const bool alone = std::none_of(entries_.begin(), entries_.end(),
                                    [&](const auto& item) { return item.second.base == level; });
    if (alone) last_served_[level] = now;  // it cannot have starved while nobody waited
    share_of(owner);
    entries_[id] = {{id, level, std::move(owner), order_++}, level, std::nullopt};
}

std::int64_t& Queue::share_of(const std::string& owner) {
    const auto found = shares_.find(owner);
    if (found != shares_.end()) return found->second;
    // A newcomer starts level with the least served owner: neither with a debt nor with credit for its
    // absence.
    std::int64_t least = 0;
    if (!shares_.empty())
        least = std::min_element(shares_.begin(), shares_.end(), [](const auto& a, const auto& b) {
                    return a.second < b.second;
                })->second;
    return shares_[owner] = least;
}

void Queue::remove(std::uint64_t id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    const std::string owner = found->second.entry.owner;
    entries_.erase(found);
    const bool gone = std::none_of(entries_.begin(), entries_.end(),
                                   [&](const auto& item) { return item.second.entry.owner == owner; });
    if (gone) shares_.erase(owner);
}

int Queue::top() const {
    int top = -1;
    for (const auto& [id, item] : entries_) top = std::max(top, item.entry.priority);
    return top;
}

std::vector<std::uint64_t> Queue::serving_order() const {
    const int level = top();
    std::vector<const Item*> items;
    for (const auto& [id, item] : entries_)
        if (item.entry.priority == level) items.push_back(&item);
    // Requests of one owner wait for each other: its n-th counts as if the ones before had been served.
    std::map<std::string, int> before;
    std::map<std::uint64_t, int> turn;
    std::sort(items.begin(), items.end(),
              [](const Item* a, const Item* b) { return a->entry.order < b->entry.order; });
    for (const Item* item : items)
        if (!item->begun) turn[item->entry.id] = before[item->entry.owner]++;
    std::stable_sort(items.begin(), items.end(), [&](const Item* a, const Item* b) {
        if (a->begun.has_value() != b->begun.has_value()) return a->begun.has_value();
        if (a->begun) return *a->begun < *b->begun;
        const int turn_a = turn[a->entry.id], turn_b = turn[b->entry.id];
        if (turn_a != turn_b) return turn_a < turn_b;
        return shares_.at(a->entry.owner) < shares_.at(b->entry.owner);
    });
    std::vector<std::uint64_t> ids;
    for (const Item* item : items) ids.push_back(item->entry.id);
    return ids;
}

void Queue::begin(std::uint64_t id) {
    Item& item = entries_.at(id);
    if (!item.begun) item.begun = begun_++;
}

void Queue::account(std::uint64_t id, std::int64_t tokens) {
    const auto found = entries_.find(id);
    if (found != entries_.end()) shares_[found->second.entry.owner] += tokens;
}

void Queue::served(const std::vector<std::uint64_t>& ids, Clock::time_point now) {
    for (std::uint64_t id : ids)
        if (const auto found = entries_.find(id); found != entries_.end())
            last_served_[found->second.base] = now;
    const int highest = top();
    for (int level = 0; level < highest; ++level) {
        if (now - last_served_[level] < aging_) continue;
        Item* oldest = nullptr;
        for (auto& [id, item] : entries_)
            if (item.entry.priority == level && (!oldest || item.entry.order < oldest->entry.order))
                oldest = &item;
        if (oldest) oldest->entry.priority = highest;
        last_served_[level] = now;
    }
}

Status check_waiting(std::size_t waiting, int most) {
    if (std::cmp_less(waiting, most)) return success();
    return failure(Code::busy,
                   "{} requests are waiting already, and queue.max_waiting is {}. Try again later", waiting,
                   most);
}

}  // namespace headrace::llm
