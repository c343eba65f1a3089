#pragma once
#include <chrono>
#include <cstdint>
#include <functional>

namespace headrace::llm {

/// How many threads compute. A neighbour that takes a core makes spinning threads wait for each other, and
/// fewer are faster then. One less when the threads did not get the cores for two looks in a row, seen from
/// the time they ran; one more when cores idle.
class ThreadGovernor {
public:
    /// idle_cores: how many cores had nothing to do since the last call.
    ThreadGovernor(int most, bool adapt, std::function<double()> idle_cores)
        : most_(most), adapt_(adapt && most > 1), threads_(most), idle_cores_(std::move(idle_cores)) {}

    int threads() const { return threads_; }
    /// A prompt is read next, and each thread that is missing makes it longer: whether a core idles by now is
    /// looked at without patience.
    void expect_prompt();
    /// A step: its time, and the time that the process's threads ran in it.
    void observe(double wall_ms, double running_ms);

private:
    void take_idle_core();

    int most_;
    bool adapt_;
    bool was_crowded_ = false;  // at the last look
    int threads_;
    std::function<double()> idle_cores_;
    double wall_ms_ = 0, running_ms_ = 0;  // since the number of threads was last judged
    double waited_ms_ = 0, patience_ms_ = 500;
};

/// Cores that idled since the last call, over the whole machine.
class IdleCores {
public:
    double operator()();

private:
    std::uint64_t idle_ = 0;
    std::chrono::steady_clock::time_point last_{};
};

}  // namespace headrace::llm
