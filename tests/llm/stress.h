#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace headrace::llm {

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
    double seconds = 0;
    std::size_t resident_before = 0, resident_after = 0;  ///< bytes, after the warm-up and at the end
    std::vector<std::string> faults;                      ///< the first of what must not happen
    int fault_count = 0;
};

/// Many sessions talk to one service from many threads, while requests are cancelled, time out, carry bad
/// input and are given up midway, and the model is swapped. Every answer must be the one that its
/// conversation gets alone.
StressReport run_stress(const StressOptions& options);

}  // namespace headrace::llm
