#include "llm/engine/loop_thread.h"

#include <gtest/gtest.h>

#include <semaphore>
#include <thread>

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;

TEST(LoopThread, RestsUntilItIsWoken) {
    std::counting_semaphore<> passes(0);
    LoopThread thread;
    ASSERT_TRUE(thread
                    .start([&] {
                        passes.release();
                        return LoopThread::kUntilWoken;
                    })
                    .ok());
    ASSERT_TRUE(passes.try_acquire_for(10s));
    EXPECT_FALSE(passes.try_acquire_for(20ms));
    thread.wake();
    EXPECT_TRUE(passes.try_acquire_for(10s));
    EXPECT_FALSE(passes.try_acquire_for(20ms)) << "a wake counts once";
}

TEST(LoopThread, MakesAnotherPassWhenItIsWokenInOne) {
    std::counting_semaphore<> passes(0);
    LoopThread thread;
    ASSERT_TRUE(thread
                    .start([&, first = true]() mutable {
                        if (std::exchange(first, false)) thread.wake();
                        passes.release();
                        return LoopThread::kUntilWoken;
                    })
                    .ok());
    EXPECT_TRUE(passes.try_acquire_for(10s));
    EXPECT_TRUE(passes.try_acquire_for(10s));
}

TEST(LoopThread, EndsAfterThePassThatRunsAndItsWakerMayOutliveIt) {
    std::function<void()> waker;
    std::binary_semaphore began(0);
    bool saw_end = false;
    {
        LoopThread thread;
        waker = thread.waker();
        ASSERT_TRUE(thread
                        .start([&] {
                            began.release();
                            while (!thread.is_stopping()) std::this_thread::yield();
                            saw_end = true;
                            return 0ms;
                        })
                        .ok());
        began.acquire();
    }
    EXPECT_TRUE(saw_end);
    waker();
}

TEST(LoopThread, EndsWithoutHavingBegun) { LoopThread().stop(); }

}  // namespace
}  // namespace headrace::llm
