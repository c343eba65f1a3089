#include "run/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "base/cpu_count.h"

namespace headrace {
namespace {

TEST(ThreadPoolLease, GivesThePoolToOneRunAtATime) {
    std::atomic<int> holders{0}, most{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                const ThreadPoolLease lease(1 + (t + i) % 3);
                most = std::max(most.load(), ++holders);
                EXPECT_NE(lease.pool(), nullptr);
                --holders;
            }
        });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(most, 1);
}

TEST(ThreadPoolLease, KeepsThePoolBetweenRuns) {
    const ggml_threadpool* first = ThreadPoolLease(2).pool();
    EXPECT_EQ(ThreadPoolLease(2).pool(), first);
}

// Processor time, so that it does not matter what else the machine does.
TEST(ThreadPoolLease, LetsIdleWorkersSleepSoon) {
    const ThreadPoolLease lease(2);
    const std::clock_t begin = std::clock();
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC / 20);
}

TEST(ThreadPoolLease, AForkedChildGetsWorkersOfItsOwn) {
    const ThreadPoolLease held(2);  // the child must not wait for a lease that only its parent can give back
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        const ThreadPoolLease lease(2);
        _exit(lease.pool() && lease.pool() != held.pool() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(DefaultThreads, AreAtLeastOneAndAtMostTheCpus) {
    const int before = default_threads();
    set_default_threads(-3);
    EXPECT_EQ(default_threads(), 1);
    set_default_threads(100000);
    EXPECT_EQ(default_threads(), usable_threads(100000));
    EXPECT_LE(default_threads(), usable_cpus());
    set_default_threads(before);
    EXPECT_EQ(default_threads(), before);
}

}  // namespace
}  // namespace headrace
