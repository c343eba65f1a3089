#include "backends/mlx/host/threads.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "backends/mlx/ggml_graph.h"

namespace headrace::mlx {
namespace {

using ::testing::Each;

class Threads : public ::testing::Test {
protected:
    void TearDown() override { set_threads(static_cast<int>(std::thread::hardware_concurrency())); }
};

TEST_F(Threads, DoEachPartOnceAndCutAtTheGrain) {
    for (const int threads : {1, 2, 5, 3}) {
        set_threads(threads);
        for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{4099}}) {
            std::vector<int> times(count, 0);
            std::atomic<int> off_the_grain{0};
            in_parts(count, 4, [&](std::size_t begin, std::size_t end) {
                if (begin % 4 != 0 || (end % 4 != 0 && end != count)) ++off_the_grain;
                for (std::size_t i = begin; i < end; ++i) ++times[i];
            });
            EXPECT_THAT(times, Each(1)) << threads << " threads, " << count;
            EXPECT_EQ(off_the_grain, 0);
        }
    }
}

TEST_F(Threads, AreTheCallersAloneWhereOneIsAskedFor) {
    set_threads(3);
    in_parts(64, 1, [](std::size_t, std::size_t) {});  // starts them
    set_threads(1);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    for (int i = 0; i < 100; ++i)
        in_parts(64, 1, [&](std::size_t, std::size_t) {
            const std::lock_guard lock(mutex);
            seen.insert(std::this_thread::get_id());
        });
    EXPECT_THAT(seen, ::testing::ElementsAre(std::this_thread::get_id()));
}

TEST_F(Threads, AreSeveralWhereTheyAreAskedFor) {
    set_threads(2);
    std::atomic<int> waiting{0};
    // Each part waits until another has begun, which needs a second thread.
    in_parts(2, 1, [&](std::size_t, std::size_t) {
        ++waiting;
        while (waiting < 2) std::this_thread::yield();
    });
    EXPECT_EQ(waiting, 2);
}

TEST_F(Threads, AreNotWaitedForByAForkedChildThatHasNone) {
    set_threads(3);
    in_parts(100, 1, [](std::size_t, std::size_t) {});
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        std::atomic<std::size_t> done = 0;
        in_parts(100, 1, [&](std::size_t begin, std::size_t end) { done += end - begin; });
        std::exit(done == 100 ? 0 : 1);  // with the destructors of what lives as long as the program
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Threads, ServeCallersInSeveralThreads) {
    set_threads(3);
    std::vector<std::size_t> sums(4);
    {
        std::vector<std::jthread> callers;
        for (std::size_t& sum : sums)
            callers.emplace_back([&sum] {
                for (int i = 0; i < 200; ++i) {
                    std::atomic<std::size_t> counted{0};
                    in_parts(1000, 1, [&](std::size_t begin, std::size_t end) { counted += end - begin; });
                    sum += counted;
                }
            });
    }
    EXPECT_THAT(sums, Each(200000u));
}

class SharedProduct : public ::testing::TestWithParam<ggml_type> {
protected:
    void TearDown() override { set_threads(static_cast<int>(std::thread::hardware_concurrency())); }
};

TEST_P(SharedProduct, IsBitByBitThatOfOneThread) {
    constexpr std::int64_t kColumns = 512, kRows = 1030;
    const ggml_type type = GetParam();
    const BackendHandle backend = mlx_backend();
    Workbench bench(backend.get());
    ggml_tensor* w = ggml_new_tensor_2d(bench.c(), type, kColumns, kRows);
    ggml_tensor* x = ggml_new_tensor_2d(bench.c(), GGML_TYPE_F32, kColumns, 3);
    ggml_tensor* y = ggml_mul_mat(bench.c(), w, x);
    bench.output(y);
    bench.allocate();
    const auto values = random_values(kColumns * kRows);
    const auto blocks = quantized(type, values, kColumns);
    ggml_backend_tensor_set(w, blocks.data(), 0, blocks.size());
    set(x, random_values(kColumns * 3, 2));
    const auto product = [&](int threads) {
        set_threads(threads);
        EXPECT_EQ(bench.compute(), GGML_STATUS_SUCCESS);
        return get(y);
    };
    const auto alone = product(1);
    EXPECT_GT(largest_difference(alone, std::vector<float>(alone.size())), 1);
    for (const int threads : {2, 3, 7}) EXPECT_EQ(product(threads), alone) << threads;
}

INSTANTIATE_TEST_SUITE_P(Types, SharedProduct,
                         ::testing::Values(GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q4_0, GGML_TYPE_Q4_1,
                                           GGML_TYPE_Q5_1, GGML_TYPE_Q8_0),
                         [](const auto& test) { return std::string(ggml_type_name(test.param)); });

}  // namespace
}  // namespace headrace::mlx
