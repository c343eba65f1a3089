#include "llm/engine/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const Queue::Clock::time_point kStart = Queue::Clock::now();

TEST(Queue, ServesTheHighestPriorityOnly) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", kStart);
    queue.add(2, Priority::normal, "b", kStart);
    queue.add(3, Priority::urgent, "c", kStart);
    queue.add(4, Priority::urgent, "d", kStart);
    EXPECT_THAT(queue.serving_order(), ElementsAre(3, 4));
    queue.remove(3);
    queue.remove(4);
    EXPECT_THAT(queue.serving_order(), ElementsAre(2));
    queue.remove(2);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1));
    queue.remove(1);
    EXPECT_EQ(queue.top(), -1);
}

TEST(Queue, LetsOwnersTakeTurns) {
    Queue queue(1s);
    for (std::uint64_t id = 1; id <= 3; ++id) queue.add(id, Priority::normal, "many", kStart);
    queue.add(4, Priority::normal, "one", kStart);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 4, 2, 3));
}

TEST(Queue, PrefersTheOwnerThatGotLess) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", kStart);
    queue.add(2, Priority::normal, "b", kStart);
    queue.account(1, 100);
    queue.account(2, 10);
    queue.add(3, Priority::normal, "a", kStart);
    queue.add(4, Priority::normal, "b", kStart);
    queue.remove(1);
    queue.remove(2);
    EXPECT_THAT(queue.serving_order(), ElementsAre(4, 3));
}

TEST(Queue, DoesNotFavorANewcomerOverThoseWhoWaited) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", kStart);
    queue.account(1, 1000);
    queue.add(2, Priority::normal, "new", kStart);  // starts level with the least served
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 2));
}

TEST(Queue, ForgetsWhatAnOwnerGotThatHasGone) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", kStart);
    queue.add(2, Priority::normal, "b", kStart);
    queue.account(1, 1000);
    queue.account(2, 10);
    queue.remove(1);
    queue.add(3, Priority::normal, "a", kStart);  // starts level with b
    queue.account(2, 500);
    EXPECT_THAT(queue.serving_order(), ElementsAre(3, 2));
}

TEST(Queue, KeepsServingWhatHasBegun) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", kStart);
    queue.add(2, Priority::normal, "b", kStart);
    queue.begin(2);
    queue.account(2, 1000);
    EXPECT_THAT(queue.serving_order(), ElementsAre(2, 1));
}

TEST(Queue, RaisesTheOldestOfAPriorityThatGotNothingForTheAgingTime) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", kStart);
    queue.add(2, Priority::low, "b", kStart);
    queue.add(3, Priority::high, "c", kStart);
    queue.served({3}, kStart + 900ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(3));
    queue.served({3}, kStart + 1100ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 3));
    queue.served({1, 3}, kStart + 1200ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 3));  // one at a time
    queue.remove(1);
    queue.served({3}, kStart + 2300ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(2, 3));
}

TEST(Queue, CountsTheRunOfOneThatWasRaisedForItsOwnPriority) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", kStart);
    queue.add(2, Priority::low, "b", kStart);
    queue.add(3, Priority::high, "c", kStart);
    queue.served({3}, kStart + 1100ms);
    queue.served({1, 3}, kStart + 2000ms);
    queue.remove(1);
    queue.served({3}, kStart + 2200ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(3)) << "a low one ran 200 ms ago";
    queue.served({3}, kStart + 3000ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(2, 3));
}

TEST(Queue, DoesNotAgeAPriorityThatIsServedNowAndThen) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", kStart);
    for (int i = 1; i < 10; ++i) {
        const auto now = kStart + i * 900ms;
        queue.add(100, Priority::high, "c", now);
        queue.served({100}, now);
        EXPECT_THAT(queue.serving_order(), ElementsAre(100)) << i;
        queue.remove(100);
        queue.served({1}, now);
    }
}

TEST(Queue, RaisesOneAtATimeAlsoWhileThatWaitsForItsTurn) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", kStart);
    queue.add(2, Priority::low, "b", kStart);
    queue.add(3, Priority::high, "c", kStart);
    queue.served({3}, kStart + 1100ms);
    queue.served({3}, kStart + 1200ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 3));
}

TEST(Queue, LetsOwnersTakeTurnsOfWhatHasNotBegun) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", kStart);
    queue.begin(1);
    queue.add(2, Priority::normal, "a", kStart);
    queue.add(3, Priority::normal, "b", kStart);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 2, 3));
}

TEST(QueueLimit, IsTheNumberThatMayWait) {
    EXPECT_TRUE(check_waiting(1, 2).ok());
    EXPECT_EQ(check_waiting(2, 2).error().code, Code::busy);
    EXPECT_EQ(check_waiting(0, 0).error().code, Code::busy);
}

/// Random histories beside a list of who is there.
class QueueHistory : public testing::TestWithParam<unsigned> {
protected:
    struct Known {
        std::string owner;
        Priority priority;
        int begun = -1;  // its place among those that have begun
    };

    unsigned draw(unsigned below) { return random_() % below; }

    void step() {
        now_ += std::chrono::milliseconds(draw(400));
        const unsigned what = draw(10);
        if (what < 4) {
            const Known one{std::string(1, static_cast<char>('a' + draw(4))), static_cast<Priority>(draw(4))};
            queue_.add(++last_, one.priority, one.owner, now_);
            known_[last_] = one;
        } else if (!known_.empty()) {
            const auto any = std::next(known_.begin(), draw(static_cast<unsigned>(known_.size())));
            if (what == 4) {
                queue_.remove(any->first);
                known_.erase(any);
            } else {
                serve(1 + draw(3));
            }
        }
    }

    /// The first few get a step each, and some are done with it.
    void serve(std::size_t most) {
        std::vector<std::uint64_t> ids = queue_.serving_order();
        ids.resize(std::min(most, ids.size()));
        for (const std::uint64_t id : ids) {
            queue_.begin(id);
            if (known_.at(id).begun < 0) known_.at(id).begun = begun_++;
            queue_.account(id, 1 + draw(100));
        }
        queue_.served(ids, now_);
        for (const std::uint64_t id : ids)
            if (draw(4) == 0) {
                queue_.remove(id);
                known_.erase(id);
            }
    }

    void check() const {
        ASSERT_EQ(queue_.size(), known_.size());
        const std::vector<std::uint64_t> order = queue_.serving_order();
        ASSERT_EQ(order.empty(), known_.empty());
        std::map<std::string, std::uint64_t> before;
        int begun = -1;
        bool waits = false;
        std::vector<std::uint64_t> once = order;
        std::sort(once.begin(), once.end());
        ASSERT_EQ(std::adjacent_find(once.begin(), once.end()), once.end());
        Priority highest = Priority::low;
        for (const auto& [id, one] : known_) highest = std::max(highest, one.priority);
        for (const std::uint64_t id : order) {
            const Known& one = known_.at(id);
            if (one.begun >= 0) {
                ASSERT_FALSE(waits) << "what has begun goes first";
                ASSERT_GT(one.begun, begun) << "in the order in which it began";
                begun = one.begun;
            } else {
                waits = true;
                ASSERT_GT(id, before[one.owner]) << "an owner's requests go in the order of their arrival";
                before[one.owner] = id;
            }
        }
        if (queue_.top() != static_cast<int>(highest))
            return;  // somebody was raised to a level that has gone
        for (const auto& [id, one] : known_) {
            const bool is_there = std::binary_search(once.begin(), once.end(), id);
            ASSERT_TRUE(is_there || one.priority != highest) << "of the highest none is left out";
        }
    }

    Queue queue_{1s};
    std::map<std::uint64_t, Known> known_;
    std::mt19937 random_{GetParam()};
    Queue::Clock::time_point now_ = kStart;
    std::uint64_t last_ = 0;
    int begun_ = 0;
};

TEST_P(QueueHistory, KeepsTheOrderAndServesEverybodyInTheEnd) {
    for (int i = 0; i < 300; ++i) {
        step();
        ASSERT_NO_FATAL_FAILURE(check()) << i;
    }
    // Every request that waits now is served once, however many urgent ones keep coming.
    std::vector<std::uint64_t> waiting;
    for (const auto& [id, one] : known_) waiting.push_back(id);
    for (int i = 0; i < 1000 && !waiting.empty(); ++i) {
        now_ += 300ms;
        queue_.add(++last_, Priority::urgent, "urgent", now_);
        const std::vector<std::uint64_t> order = queue_.serving_order();
        queue_.begin(order.front());
        queue_.account(order.front(), 50);
        queue_.served({order.front()}, now_);
        queue_.remove(order.front());
        std::erase(waiting, order.front());
    }
    EXPECT_THAT(waiting, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueueHistory, testing::Range(0u, 200u));

}  // namespace
}  // namespace headrace::llm
