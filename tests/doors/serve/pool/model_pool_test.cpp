#include "doors/serve/pool/model_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

namespace headrace::serve {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kBytes = 100;

/// Counts what is in memory.
struct Memory {
    std::atomic<std::uint64_t> bytes = 0, most = 0;
};

class Simulated : public Resident {
public:
    Simulated(Memory& memory, std::string id, std::string version)
        : id(std::move(id)), version(std::move(version)), memory_(memory) {
        const std::uint64_t now = memory_.bytes += kBytes;
        std::uint64_t most = memory_.most;
        while (now > most && !memory_.most.compare_exchange_weak(most, now)) {
        }
    }
    ~Simulated() override {
        EXPECT_EQ(users, 0) << id << " was given back while it was used";
        memory_.bytes -= kBytes;
    }
    std::uint64_t resident_bytes() const override { return kBytes; }

    const std::string id, version;
    std::atomic<int> users = 0;

private:
    Memory& memory_;
};

/// Models whose loads take some milliseconds; of some, every third fails.
std::vector<ModelPool::Source> sources(Memory& memory, int count, std::atomic<int>& version) {
    std::vector<ModelPool::Source> all;
    for (int i = 0; i < count; ++i) {
        const std::string id = std::to_string(i);
        all.push_back({.id = id,
                       .file_version = [&version] { return std::to_string(version); },
                       .measure =
                           [] {
                               return ModelSchedule::Size{{"", kBytes}};
                           },
                       .load = [&memory, &version, id]() -> std::shared_ptr<Resident> {
                           static std::atomic<int> loads = 0;
                           std::this_thread::sleep_for(milliseconds(1));
                           if (id == "0" && ++loads % 3 == 0)
                               throw ApiError(500, "server_error", "it is broken");
                           return std::make_shared<Simulated>(memory, id, std::to_string(version));
                       }});
    }
    return all;
}

TEST(ModelPool, KeepsItsLimitsWhileManyThreadsUseManyModels) {
    Memory memory;
    std::atomic<int> version = 0, answers = 0, failures = 0, left = 0;
    {
        ModelPool pool({.bytes = 3 * kBytes, .models = 3, .waiting = 64});
        pool.configure(sources(memory, 6, version));
        std::vector<std::thread> threads;
        for (unsigned seed = 0; seed < 8; ++seed)
            threads.emplace_back([&, seed] {
                std::mt19937 random(seed);
                for (int i = 0; i < 150; ++i) {
                    const std::string id = std::to_string(random() % 6);
                    if (random() % 100 == 0) ++version;
                    const bool leaves = random() % 20 == 0;
                    try {
                        const auto held = pool.acquire(id, {.is_gone = [&] { return leaves; }});
                        auto& model = dynamic_cast<Simulated&>(*held);
                        EXPECT_EQ(model.id, id);
                        ++model.users;
                        std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
                        --model.users;
                        ++answers;
                    } catch (const ApiError& error) {
                        ++(error.status == 499 ? left : failures);
                    }
                }
            });
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(answers + failures + left, 8 * 150);
        EXPECT_GT(answers, 800);
        EXPECT_GT(pool.counts().unloads, 10u);
        EXPECT_EQ(pool.counts().waiting, 0u);
    }
    EXPECT_LE(memory.most, 3 * kBytes);
    EXPECT_EQ(memory.bytes, 0u);
}

TEST(ModelPool, EndsAWaitWhenItsTimeIsOver) {
    Memory memory;
    std::atomic<int> version = 0;
    ModelPool pool({.models = 1});
    pool.configure(sources(memory, 3, version));
    const auto held = pool.acquire("1");
    try {
        pool.acquire("2", {.until = ModelSchedule::Clock::now() + milliseconds(30)});
        FAIL();
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status, 504);
    }
    EXPECT_NE(pool.peek("1"), nullptr);
    EXPECT_EQ(pool.peek("2"), nullptr);
}

TEST(ModelPool, RefusesAllWhoWaitWhenItIsClosed) {
    Memory memory;
    std::atomic<int> version = 0;
    ModelPool pool({.models = 1});
    pool.configure(sources(memory, 3, version));
    const auto held = pool.acquire("1");
    std::atomic<int> status = 0;
    std::thread waiting([&] {
        try {
            pool.acquire("2");
        } catch (const ApiError& error) {
            status = error.status;
        }
    });
    while (pool.counts().waiting == 0) std::this_thread::yield();
    pool.close();
    waiting.join();
    EXPECT_EQ(status, 503);
    EXPECT_THROW(pool.acquire("1"), ApiError);
}

TEST(ModelPool, TakesAFileThatIsPutInAnothersPlace) {
    Memory memory;
    std::atomic<int> version = 0;
    ModelPool pool({});
    pool.configure(sources(memory, 2, version));
    const auto before = pool.acquire("1");
    version = 1;
    for (;;) {
        const auto now = pool.acquire("1");
        if (dynamic_cast<Simulated&>(*now).version == "1") break;
        std::this_thread::sleep_for(milliseconds(1));
    }
    EXPECT_EQ(dynamic_cast<Simulated&>(*before).version, "0");
}

}  // namespace
}  // namespace headrace::serve
