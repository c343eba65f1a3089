#include "llm/stopping/time_limit.h"

#include <gtest/gtest.h>

namespace headrace::llm {
namespace {

using std::chrono::milliseconds;

/// Milliseconds after which an answer ends whose tokens take that long each; none when it has 10,000.
std::optional<std::int64_t> end_of(const StoppingSettings& settings, int most_tokens, int first_ms,
                                   int later_ms) {
    TimeLimit limit(settings, most_tokens);
    const std::chrono::steady_clock::time_point start{};
    auto now = start;
    for (int token = 0; token < 10'000; ++token) {
        if (limit.reached(now)) return std::chrono::duration_cast<milliseconds>(now - start).count();
        now += milliseconds(token < TimeLimit::kMeasured ? first_ms : later_ms);
    }
    return std::nullopt;
}

StoppingSettings adaptive(std::int64_t least, std::int64_t most, float multiplier) {
    return {
        .max_predict_ms = most, .adaptive_time = true, .min_time_ms = least, .time_multiplier = multiplier};
}

TEST(AdaptiveTime, IsTheExpectedTimesTheMultiplier) {
    EXPECT_EQ(end_of(adaptive(0, -1, 2), 100, 10, 50), 2010) << "100 tokens of 10 ms, twice: 2 s, at a token";
    EXPECT_EQ(end_of(adaptive(0, -1, 0.5f), 100, 10, 10), 500);
}

TEST(AdaptiveTime, IsNoShorterThanTheMinimum) { EXPECT_EQ(end_of(adaptive(3000, -1, 2), 100, 10, 10), 3000); }

TEST(AdaptiveTime, IsNoLongerThanTheMaximum) {
    EXPECT_EQ(end_of(adaptive(0, 700, 2), 100, 10, 10), 700);
    EXPECT_EQ(end_of(adaptive(3000, 700, 2), 100, 10, 10), 700) << "also where the minimum is beyond it";
    EXPECT_EQ(end_of(adaptive(0, 700, 2), 100, 100, 10), 700) << "also before the speed is known";
}

TEST(AdaptiveTime, IsNotKnownWithoutANumberOfTokens) {
    EXPECT_EQ(end_of(adaptive(0, -1, 0.5f), 0, 10, 10), std::nullopt);
    EXPECT_EQ(end_of(adaptive(0, 5000, 0.5f), 0, 10, 10), 5000);
}

TEST(AdaptiveTime, OfHugeNumbersDoesNotOverflow) {
    EXPECT_EQ(end_of(adaptive(0, -1, 1000), INT32_MAX, 1'000'000, 1'000'000), std::nullopt);
    EXPECT_EQ(end_of(adaptive(INT64_MAX, INT64_MAX, 1000), 5, 1'000'000, 1'000'000), std::nullopt);
}

TEST(TimeLimits, ThatAreSwitchedOffAreNone) {
    StoppingSettings settings = adaptive(0, 100, 0.5f);
    settings.limits_time = false;
    EXPECT_EQ(end_of(settings, 100, 10, 10), std::nullopt);
}

}  // namespace
}  // namespace headrace::llm
