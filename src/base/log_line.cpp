#include "base/log_line.h"

#include <fmt/chrono.h>

#include <array>
#include <cstdint>
#include <ctime>
#include <iterator>

#include "base/utf8.h"

namespace headrace {
namespace {

enum class Quoting { text, word, json };

/// C0, DEL and C1: what a terminal may act upon. U+2028 and U+2029 end a line for some readers.
bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029; }

void append_control(std::string& out, char32_t c, Quoting quoting) {
    if (c == '\n')
        out += "\\n";
    else if (c == '\t')
        out += "\\t";
    else if (c == '\r')
        out += "\\r";
    else if (c < 0x80 && quoting != Quoting::json)
        fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint32_t>(c));
    else
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
}

void append_escaped(std::string& out, std::string_view text, std::size_t limit, Quoting quoting) {
    const std::size_t size = text.size();
    std::string_view rest = text;
    while (!rest.empty() && size - rest.size() < limit) {
        const auto point = first_code_point(rest);
        const std::size_t bytes = point ? point->size : rest.size();
        if (!point || !point->is_valid) {
            // JSON has no escape for a byte: there its text shows one.
            for (const char byte : rest.substr(0, bytes))
                fmt::format_to(std::back_inserter(out), "{}\\x{:02x}", quoting == Quoting::json ? "\\" : "",
                               static_cast<std::uint8_t>(byte));
        } else if (is_control(point->value)) {
            append_control(out, point->value, quoting);
        } else if (quoting == Quoting::json && (point->value == '"' || point->value == '\\')) {
            out += '\\';
            out += rest[0];
        } else if (quoting == Quoting::word && point->value == ' ') {
            out += "\\x20";
        } else {
            out += rest.substr(0, bytes);
        }
        rest.remove_prefix(bytes);
    }
    if (!rest.empty()) fmt::format_to(std::back_inserter(out), "... ({} bytes more)", rest.size());
}

}  // namespace

std::string log_time(std::chrono::system_clock::time_point time) {
    const auto since = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
    const auto milliseconds = (since % 1000 + 1000) % 1000;
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                       fmt::gmtime(static_cast<std::time_t>((since - milliseconds) / 1000)), milliseconds);
}

std::string_view log_level_name(LogLevel level) {
    static constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "none"};
    return kNames[static_cast<std::size_t>(level)];
}

std::string format_log_line(const LogLine& line, bool json, std::chrono::system_clock::time_point time) {
    const std::string_view level = log_level_name(line.level);
    const auto& [session, request] = line.context;
    std::string out;
    if (json) {
        out = fmt::format(R"({{"time":"{}","level":"{}")", log_time(time), level);
        if (!session.empty()) {
            out += R"(,"session":")";
            append_escaped(out, session, kMaxLogSession, Quoting::json);
            out += '"';
        }
        if (request != 0) out += fmt::format(R"(,"request":{})", request);
        out += R"(,"message":")";
        append_escaped(out, line.message, kMaxLogMessage, Quoting::json);
        out += "\"}\n";
        return out;
    }
    out = fmt::format("{} {:5} ", log_time(time), level);
    if (!session.empty()) {
        out += "session=";
        append_escaped(out, session, kMaxLogSession, Quoting::word);
        out += ' ';
    }
    if (request != 0) out += fmt::format("request={} ", request);
    append_escaped(out, line.message, kMaxLogMessage, Quoting::text);
    out += '\n';
    return out;
}

}  // namespace headrace
