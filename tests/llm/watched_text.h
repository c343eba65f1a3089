#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "llm/stopping/stop_conditions.h"

namespace headrace::llm {

/// What a generation showed in all, and why it ended.
struct Watched {
    std::string text;
    StopReason reason = StopReason::none;
    std::string detail;
    std::size_t steps = 0;  // that were taken before the stop

    bool operator==(const Watched& other) const {
        return text == other.text && reason == other.reason && detail == other.detail;
    }
};

inline std::ostream& operator<<(std::ostream& out, const Watched& watched) {
    return out << '"' << watched.text << "\" " << to_string(watched.reason) << " \"" << watched.detail << '"';
}

inline StopConditions make_watch(const StoppingSettings& settings) {
    auto watch = StopConditions::create(settings);
    if (!watch) ADD_FAILURE() << watch.error().message;
    return std::move(watch).value();
}

/// Feeds the pieces as tokens 0, 1, ... until one stops the generation; else the generation ends after the
/// last.
inline Watched watch_pieces(StopConditions& watch, const std::vector<std::string>& pieces) {
    Watched result;
    for (const std::string& piece : pieces) {
        const auto step = watch.feed(static_cast<int>(result.steps++), piece, {});
        result.text += step.text;
        result.reason = step.reason;
        result.detail = step.detail;
        if (step.reason != StopReason::none) return result;
    }
    result.text += watch.finish();
    return result;
}

inline Watched watch_pieces(const StoppingSettings& settings, const std::vector<std::string>& pieces) {
    StopConditions watch = make_watch(settings);
    return watch_pieces(watch, pieces);
}

inline std::vector<std::string> single_bytes(std::string_view text) {
    std::vector<std::string> pieces;
    for (const char byte : text) pieces.emplace_back(1, byte);
    return pieces;
}

}  // namespace headrace::llm
