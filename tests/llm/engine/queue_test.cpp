#include "llm/engine/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

const Queue::Clock::time_point start = Queue::Clock::now();

TEST(Queue, ServesTheHighestPriorityOnly) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", start);
    queue.add(2, Priority::normal, "b", start);
    queue.add(3, Priority::urgent, "c", start);
    queue.add(4, Priority::urgent, "d", start);
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
    for (std::uint64_t id = 1; id <= 3; ++id) queue.add(id, Priority::normal, "many", start);
    queue.add(4, Priority::normal, "one", start);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 4, 2, 3));
}

TEST(Queue, PrefersTheOwnerThatGotLess) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", start);
    queue.add(2, Priority::normal, "b", start);
    queue.account(1, 100);
    queue.account(2, 10);
    queue.add(3, Priority::normal, "a", start);
    queue.add(4, Priority::normal, "b", start);
    queue.remove(1);
    queue.remove(2);
    EXPECT_THAT(queue.serving_order(), ElementsAre(4, 3));
}

TEST(Queue, DoesNotFavourANewcomerOverThoseWhoWaited) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", start);
    queue.account(1, 1000);
    queue.add(2, Priority::normal, "new", start);  // starts level with the least served
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 2));
}

TEST(Queue, KeepsServingWhatHasBegun) {
    Queue queue(1s);
    queue.add(1, Priority::normal, "a", start);
    queue.add(2, Priority::normal, "b", start);
    queue.begin(2);
    queue.account(2, 1000);
    EXPECT_THAT(queue.serving_order(), ElementsAre(2, 1));
}

TEST(Queue, RaisesTheOldestOfAPriorityThatGotNothingForTheAgingTime) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", start);
    queue.add(2, Priority::low, "b", start);
    queue.add(3, Priority::high, "c", start);
    queue.served({3}, start + 900ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(3));
    queue.served({3}, start + 1100ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 3));
    queue.served({1, 3}, start + 1200ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(1, 3));  // one at a time
    queue.remove(1);
    queue.served({3}, start + 2300ms);
    EXPECT_THAT(queue.serving_order(), ElementsAre(2, 3));
}

TEST(Queue, DoesNotAgeAPriorityThatIsServedNowAndThen) {
    Queue queue(1s);
    queue.add(1, Priority::low, "a", start);
    for (int i = 1; i < 10; ++i) {
        const auto now = start + i * 900ms;
        queue.add(100, Priority::high, "c", now);
        queue.served({100}, now);
        EXPECT_THAT(queue.serving_order(), ElementsAre(100)) << i;
        queue.remove(100);
        queue.served({1}, now);
    }
}

}  // namespace
}  // namespace headrace::llm
