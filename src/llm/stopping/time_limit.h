#pragma once
#include <chrono>
#include <cstdint>
#include <optional>

#include "llm/settings.h"

namespace headrace::llm {

/// How long an answer may take from its first token on: what the settings say or, adaptively, the time that
/// its own first tokens let expect, times a factor. The adaptive limit is between min_time_ms and
/// max_predict_ms, and the latter holds until it is known.
class TimeLimit {
public:
    static constexpr int kMeasured = 16;  ///< tokens after the first, from which the speed is known

    /// most_tokens: that the answer may have; less than 1: not known, so that nothing is expected.
    TimeLimit(const StoppingSettings& settings, int most_tokens);

    /// Counts a token. The limit in milliseconds once it is reached.
    std::optional<std::int64_t> reached(std::chrono::steady_clock::time_point now);

private:
    void adapt(std::chrono::steady_clock::duration measured);

    std::int64_t limit_ms_ = -1;
    bool is_adaptive_ = false;
    std::int64_t least_ms_ = 0;
    double multiplier_ = 1;
    int most_tokens_ = 0;
    int tokens_ = 0;
    std::chrono::steady_clock::time_point first_;
};

}  // namespace headrace::llm
