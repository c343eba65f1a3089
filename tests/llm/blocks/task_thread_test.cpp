#include "llm/blocks/task_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <new>
#include <vector>

namespace headrace::llm {
namespace {

TEST(TaskThread, DoesWhatItIsGivenInTurn) {
    TaskThread thread;
    std::vector<int> done;
    std::promise<void> last;
    for (int i = 0; i < 100; ++i) thread.post([&done, i] { done.push_back(i); });
    thread.post([&] { last.set_value(); });
    last.get_future().wait();
    ASSERT_EQ(done.size(), 100u);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(done[i], i);
}

TEST(TaskThread, GoesOnAfterATaskThatFoundNoMemory) {
    TaskThread thread;
    std::promise<void> next;
    thread.post([] { throw std::bad_alloc(); });
    thread.post([&] { next.set_value(); });
    next.get_future().wait();
}

TEST(TaskThread, DropsWhatHasNotBegunWhenItStops) {
    TaskThread thread;
    std::promise<void> begun;
    bool ended = false, later = false;
    thread.post([&] {
        begun.set_value();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        ended = true;
    });
    thread.post([&] { later = true; });
    begun.get_future().wait();
    thread.stop();
    EXPECT_TRUE(ended);
    EXPECT_FALSE(later);
}

}  // namespace
}  // namespace headrace::llm
