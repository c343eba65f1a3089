#pragma once
#include <chrono>
#include <string>
#include <string_view>

#include "base/log.h"

namespace headrace {

inline constexpr std::size_t kMaxLogMessage = 16384;  ///< bytes; what is longer is cut
inline constexpr std::size_t kMaxLogSession = 256;

/// The line as it is written, with its newline: RFC 3339 time in UTC, level, session, request and message.
/// Control characters and bytes that are not UTF-8 are escaped, so that a message is always one line and
/// valid UTF-8.
std::string format_log_line(const LogLine& line, bool json, std::chrono::system_clock::time_point time);

/// The time as lines have it: "2026-11-21T20:51:25.123Z".
std::string log_time(std::chrono::system_clock::time_point time);

std::string_view log_level_name(LogLevel level);

}  // namespace headrace
