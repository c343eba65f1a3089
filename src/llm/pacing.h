#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

namespace headrace::llm {

/// How many prompt tokens a step may take beside streams that decode, so that these do not stall: learnt from
/// the steps' times.
class PromptPacing {
public:
    PromptPacing(double target_ms, int most) : target_ms_(target_ms), most_(most) {}

    int budget(int decoding) const;
    void observe(int decoding, int prompt, double ms);

private:
    static constexpr int least_ = 8;  // a prompt always advances
    double target_ms_;
    int most_;
    double prompt_ms_ = 2.0;           // of a prompt token; a first guess
    std::map<int, double> decode_ms_;  // of a step without prompt tokens, by its tokens
};

/// How many threads compute. A neighbour that takes a core makes spinning threads wait for each other, and
/// fewer are faster then. One less when the threads did not get the cores, seen from the time they ran; one
/// more when cores idle.
class ThreadPacing {
public:
    /// idle_cores: how many cores had nothing to do since the last call.
    ThreadPacing(int most, bool adapt, std::function<double()> idle_cores)
        : most_(most), adapt_(adapt && most > 1), threads_(most), idle_cores_(std::move(idle_cores)) {}

    int threads() const { return threads_; }
    /// A step: its time, and the time that the process's threads ran in it.
    void observe(double wall_ms, double running_ms);

private:
    int most_;
    bool adapt_;
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
    uint64_t idle_ = 0;
    std::chrono::steady_clock::time_point last_{};
};

}  // namespace headrace::llm
