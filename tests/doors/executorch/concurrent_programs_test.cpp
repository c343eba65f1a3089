#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <thread>

#include "blobs.h"

namespace headrace {
namespace {

using namespace testing;

constexpr int kRuns = 50;
constexpr int kThreads = 4;
constexpr int kIn = 4, kOut = 3;
constexpr int kWide = 192;  ///< enough for a run to use the threads that all share

bool is_near(const float* actual, const std::vector<float>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (std::abs(actual[i] - expected[i]) > 1e-4f * (1 + std::abs(expected[i]))) return false;
    return true;
}

/// Loads and runs a layer with lengths that change; the number of wrong answers.
int wrong_runs(const Layer& layer, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> real(-1, 1);
    const Delegate delegate(layer.blob, &layer.weights);
    if (delegate.error() != et::Error::Ok) return kRuns;
    const TensorPtr y = room({kMostRows, layer.out}), total = room({layer.out});
    std::vector<float> sum(layer.out);
    int wrong = 0;
    for (int run = 0; run < kRuns; ++run) {
        const int rows = 1 + static_cast<int>(random() % kMostRows);
        std::vector<float> x(rows * layer.in);
        for (float& value : x) value = real(random);
        const std::vector<float> expected = layer.expected(x, sum);
        const bool ran = delegate.run({tensor({rows, layer.in}, x), y, total}) == et::Error::Ok;
        wrong += !ran || y->size(0) != rows || !is_near(y->const_data_ptr<float>(), expected) ||
                 !is_near(total->const_data_ptr<float>(), sum);
    }
    return wrong;
}

/// The wrong answers of threads that begin together, each with the layer of its number.
int wrong_runs(const std::vector<const Layer*>& layers) {
    std::vector<std::thread> threads;
    std::barrier start(static_cast<std::ptrdiff_t>(layers.size()));
    std::atomic<int> wrong = 0;
    for (unsigned i = 0; i < layers.size(); ++i)
        threads.emplace_back([&, i] {
            start.arrive_and_wait();
            wrong += wrong_runs(*layers[i], i);
        });
    for (std::thread& thread : threads) thread.join();
    return wrong;
}

TEST(DelegateConcurrent, ProgramsInSeveralThreadsGiveTheirOwnAnswers) {
    for (const int width : {kOut, kWide}) {
        // Two of each content; every one is another program, whose identity is its map of weights.
        const Layer one(1, width, width), other(2, width, width), again(1, width, width),
            last(2, width, width);
        EXPECT_EQ(wrong_runs({&one, &other, &again, &last}), 0);
    }
}

TEST(DelegateConcurrent, LoadsOfOneProgramInSeveralThreadsShareNothing) {
    for (const int width : {kOut, kWide}) {
        const Layer layer(3, width, width);
        EXPECT_EQ(wrong_runs(std::vector<const Layer*>(kThreads, &layer)), 0);
    }
}

TEST(DelegateConcurrent, MethodsThatShareAStateRunOneAfterTheOther) {
    const Layer layer(4);
    const Delegate one(layer.blob, &layer.weights, "one"), other(layer.blob, &layer.weights, "other");
    const std::vector<float> x{0.5f, -0.25f, 1, 2};
    std::vector<float> added(kOut);
    layer.expected(x, added);
    std::vector<std::thread> threads;
    for (const Delegate* method : {&one, &other})
        threads.emplace_back([&, method] {
            for (int run = 0; run < kRuns; ++run)
                EXPECT_EQ(method->run({tensor({1, kIn}, x), room({kMostRows, kOut}), room({kOut})}),
                          et::Error::Ok);
        });
    for (std::thread& thread : threads) thread.join();
    const TensorPtr total = room({kOut});
    ASSERT_EQ(one.run({tensor({1, kIn}, x), room({kMostRows, kOut}), total}), et::Error::Ok);
    for (float& value : added) value *= 2 * kRuns + 1;
    EXPECT_TRUE(is_near(total->const_data_ptr<float>(), added));
}

}  // namespace
}  // namespace headrace
