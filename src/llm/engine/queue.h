#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/settings.h"

namespace headrace::llm {

/// The order in which requests are served: by priority, and within one the owner that was served least goes
/// first. A priority that got nothing for a while has its oldest request raised to the top, so that nothing
/// starves. Plain data, without threads: the engine's loop owns it.
class Queue {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr int priorities = 4;

    explicit Queue(std::chrono::milliseconds aging) : aging_(aging) {}

    struct Entry {
        std::uint64_t id = 0;
        int priority = 0;  ///< 0 low to 3 urgent; may be raised by aging
        std::string owner;
        std::uint64_t order = 0;  ///< of arrival
    };

    void add(std::uint64_t id, Priority priority, std::string owner, Clock::time_point now);
    void remove(std::uint64_t id);
    /// The highest priority among the entries; -1 without any.
    int top() const;
    /// The ids of the top priority in the order in which they should be served: those that have begun first,
    /// in the order in which they began; then by what their owners got so far.
    std::vector<std::uint64_t> serving_order() const;
    void begin(std::uint64_t id);
    /// Says that an owner got work done, in tokens.
    void account(std::uint64_t id, std::int64_t tokens);
    /// Records that the entries with these ids ran, and raises the oldest of a priority that starves.
    void served(const std::vector<std::uint64_t>& ids, Clock::time_point now);
    std::size_t size() const { return entries_.size(); }

private:
    struct Item {
        Entry entry;
        int base = 0;
        std::optional<std::uint64_t> begun;
    };
    std::int64_t& share_of(const std::string& owner);

    std::chrono::milliseconds aging_;
    std::map<std::uint64_t, Item> entries_;
    std::map<std::string, std::int64_t> shares_;  // tokens that each present owner got
    std::array<Clock::time_point, priorities> last_served_{};
    std::uint64_t order_ = 0, begun_ = 0;
};

/// Code::busy when that many wait already.
Status check_waiting(std::size_t waiting, int most);

}  // namespace headrace::llm
