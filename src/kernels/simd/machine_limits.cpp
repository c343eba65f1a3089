#include "kernels/simd/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/machine_limits.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double burst(long steps, float* state) {
    const hn::ScalableTag<float> d;
    using V = hn::Vec<decltype(d)>;
    // Different starting values, or the compiler would see equal sums and keep one.
    const auto start = [&](int i) HWY_ATTR { return hn::Set(d, state[4 + i]); };
    V s0 = start(0), s1 = start(1), s2 = start(2), s3 = start(3), s4 = start(4), s5 = start(5);
    V s6 = start(6), s7 = start(7), s8 = start(8), s9 = start(9), s10 = start(10), s11 = start(11);
    const V x = hn::Set(d, state[0]), y = hn::Set(d, state[1]);
    for (long i = 0; i < steps; ++i) {
        s0 = hn::MulAdd(s0, x, y), s1 = hn::MulAdd(s1, x, y), s2 = hn::MulAdd(s2, x, y),
        s3 = hn::MulAdd(s3, x, y);
        s4 = hn::MulAdd(s4, x, y), s5 = hn::MulAdd(s5, x, y), s6 = hn::MulAdd(s6, x, y),
        s7 = hn::MulAdd(s7, x, y);
        s8 = hn::MulAdd(s8, x, y), s9 = hn::MulAdd(s9, x, y), s10 = hn::MulAdd(s10, x, y),
        s11 = hn::MulAdd(s11, x, y);
    }
    const V a = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
    const V sum = hn::Add(a, hn::Add(hn::Add(s8, s9), hn::Add(s10, s11)));
    state[2] += hn::GetLane(sum);
    return 12.0 * 2.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(steps);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(burst);

namespace {

// The least seconds in which all threads have done work(ith), of `rounds` rounds.
template <class Work>
double best_seconds(int threads, int rounds, Work work) {
    using Clock = std::chrono::steady_clock;
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
        std::atomic<int> ready = 0;
        std::vector<double> seconds(static_cast<size_t>(threads));
        std::vector<std::thread> others;
        const auto one = [&](int ith) {
            for (++ready; ready < threads;) std::this_thread::yield();
            const auto begin = Clock::now();
            work(ith);
            seconds[static_cast<size_t>(ith)] = std::chrono::duration<double>(Clock::now() - begin).count();
        };
        for (int i = 1; i < threads; ++i) others.emplace_back(one, i);
        one(0);
        for (std::thread& other : others) other.join();
        best = std::min(best, *std::max_element(seconds.begin(), seconds.end()));
    }
    return best;
}

}  // namespace

double fma_burst(long steps, float* state) { return HWY_DYNAMIC_DISPATCH(burst)(steps, state); }

unsigned long long read_burst(const void* memory, size_t bytes) {
    const auto* words = static_cast<const uint64_t*>(memory);
    uint64_t sums[8] = {};
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i += 8)
        for (size_t lane = 0; lane < 8; ++lane) sums[lane] += words[i + lane];
    return sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
}

MachineLimits measure_limits(int threads) {
    constexpr long kSteps = 1'000'000;
    std::vector<double> flops(static_cast<size_t>(threads));
    const double computing = best_seconds(threads, 8, [&](int ith) {
        float state[16] = {0.999f, 1e-3f};
        flops[static_cast<size_t>(ith)] = fma_burst(kSteps, state);
    });
    const std::vector<uint64_t> memory((size_t{1} << 30) / sizeof(uint64_t), 1);
    std::atomic<uint64_t> sink = 0;
    const double reading = best_seconds(threads, 6, [&](int ith) {
        const size_t share = memory.size() / static_cast<size_t>(threads) / 8 * 8;
        sink += read_burst(memory.data() + share * static_cast<size_t>(ith), share * sizeof(uint64_t));
    });
    double total = 0;
    for (double f : flops) total += f;
    return {total / computing / 1e9, static_cast<double>(memory.size() * sizeof(uint64_t)) / reading / 1e9};
}

}  // namespace headrace::kernels
#endif
