#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::llm {

/// How many prompt tokens a step may take, so that streams that decode do not stall, and whoever comes does
/// not wait for a long step's end.
///
/// Steps come in sizes, because kernels compute whole tiles of tokens: 17 take as long as 32, and attention
/// over many tokens at once changes to a faster kernel. What a step of each size takes is learnt, and the
/// size that reads most tokens a second is taken. Beside streams that decode, being late counts against a
/// size with its square; where nobody waits yet, a late one has to be clearly faster. All times follow the
/// latest step, for they all grow with the context, and with a neighbour's load.
class PromptPacing {
public:
    /// target_ms: what a step should take at most, about; most: a step's most tokens.
    PromptPacing(double target_ms, int most);

    /// Prompt tokens for a step in which that many tokens decode.
    int budget(int decoding) const;
    void observe(int decoding, int prompt, double ms);

private:
    struct Size {
        int tokens;
        double ms = 0;  // 0: no step of this size has been seen
    };

    double expected_ms(std::size_t index) const;
    int budget_alone() const;

    double target_ms_;
    int most_;
    std::vector<Size> sizes_;
};

/// How many threads compute. A neighbour that takes a core makes spinning threads wait for each other, and
/// fewer are faster then. One less when the threads did not get the cores for two looks in a row, seen from
/// the time they ran; one more when cores idle.
class ThreadPacing {
public:
    /// idle_cores: how many cores had nothing to do since the last call.
    ThreadPacing(int most, bool adapt, std::function<double()> idle_cores)
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
