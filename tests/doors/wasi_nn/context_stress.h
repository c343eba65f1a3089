#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::wasi_nn {

struct StressOptions {
    int requests = 10000;
    int sessions = 200;
    int threads = 16;
    double seconds = 0;  ///< more than 0: ends then, however many requests were made
    std::uint64_t seed = 1;
    bool swaps = true;  ///< the model is replaced while requests run
};

struct StressReport {
    int requests = 0;  ///< including those that were cancelled or refused
    int answers = 0, cancelled = 0, timed_out = 0, refused = 0, swaps = 0;
    int near_ties = 0;  ///< answers that differ because rounding chose between two tokens; see near_tie.h
    double seconds = 0;
    struct Memory {
        /// Bytes of the process; 0 under a sanitizer, which keeps what is freed and its own books there.
        std::size_t resident = 0;
        std::size_t allocated = 0;  ///< bytes of the heap that somebody holds
    };
    /// After each quarter of the run. What one half has used is still there for the other, so that a heap has
    /// taken its shape by the middle; a leak goes on.
    std::array<Memory, 4> memory;
    std::vector<std::string> faults;  ///< the first of what must not happen
    int fault_count = 0;

    /// Rounding is no excuse for more than one answer in 200. A short run asks few turns again and again, of
    /// which one may hang on a near-tie: it is given some.
    bool has_few_near_ties() const { return near_ties <= std::max(4, answers / 200); }
};

/// Many sessions talk to one service from many threads, while requests are cancelled, time out, carry bad
/// input and are given up midway, and the model is swapped. Every answer must be the one that its
/// conversation gets alone, or differ from it by a near-tie.
StressReport run_stress(const StressOptions& options);

}  // namespace headrace::wasi_nn
