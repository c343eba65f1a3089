#include "llm/stopping/time_limit.h"

#include <algorithm>

namespace headrace::llm {
namespace {

/// A longer limit is none: its end would lie beyond what a clock can show.
constexpr std::int64_t kLongestLimitMs = std::int64_t{1} << 40;

}  // namespace

TimeLimit::TimeLimit(const StoppingSettings& settings, int most_tokens) : most_tokens_(most_tokens) {
    if (!settings.limits_time) return;
    limit_ms_ = std::min(settings.max_predict_ms, kLongestLimitMs);
    is_adaptive_ = settings.adaptive_time && most_tokens > 0;
    least_ms_ = std::clamp<std::int64_t>(settings.min_time_ms, 0, kLongestLimitMs);
    multiplier_ = settings.time_multiplier;
}

std::optional<std::int64_t> TimeLimit::reached(std::chrono::steady_clock::time_point now) {
    if (tokens_ == 0) first_ = now;
    const auto elapsed = now - first_;
    if (is_adaptive_ && tokens_ == kMeasured) adapt(elapsed);
    tokens_ = std::min(tokens_ + 1, kMeasured + 1);
    if (limit_ms_ < 0 || elapsed < std::chrono::milliseconds(limit_ms_)) return std::nullopt;
    return limit_ms_;
}

void TimeLimit::adapt(std::chrono::steady_clock::duration measured) {
    const double token_ms = std::chrono::duration<double, std::milli>(measured).count() / kMeasured;
    const double expected =
        std::min(token_ms * most_tokens_ * multiplier_, static_cast<double>(kLongestLimitMs));
    const std::int64_t adapted = std::max(static_cast<std::int64_t>(expected), least_ms_);
    limit_ms_ = limit_ms_ < 0 ? adapted : std::min(limit_ms_, adapted);
}

}  // namespace headrace::llm
