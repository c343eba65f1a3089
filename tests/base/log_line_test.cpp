#include "base/log_line.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace headrace {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

const auto kTime = std::chrono::system_clock::time_point(std::chrono::milliseconds(1732222285007));

std::string text_of(const LogLine& line) { return format_log_line(line, false, kTime); }
nlohmann::json json_of(const LogLine& line) {
    return nlohmann::json::parse(format_log_line(line, true, kTime));
}

TEST(LogLine, AsTextHasTimeLevelContextAndMessage) {
    EXPECT_EQ(text_of({LogLevel::warn, "low memory", {}}), "2024-11-21T20:51:25.007Z warn  low memory\n");
    EXPECT_EQ(text_of({LogLevel::error, "failed", {"chat 1", 12}}),
              "2024-11-21T20:51:25.007Z error session=chat\\x201 request=12 failed\n");
}

TEST(LogLine, AsJsonHasAMemberForEach) {
    const nlohmann::json full = {{"time", "2024-11-21T20:51:25.007Z"},
                                 {"level", "debug"},
                                 {"session", "chat 1"},
                                 {"request", 18446744073709551615u},
                                 {"message", "he said \"no\\n\""}};
    EXPECT_EQ(json_of({LogLevel::debug, "he said \"no\\n\"", {"chat 1", 18446744073709551615u}}), full);
    const nlohmann::json bare = {{"time", "2024-11-21T20:51:25.007Z"}, {"level", "info"}, {"message", "é😀"}};
    EXPECT_EQ(json_of({LogLevel::info, "é😀", {}}), bare);
}

TEST(LogLine, WritesTimesBefore1970AndWholeSeconds) {
    const auto at = [](std::int64_t ms) {
        return format_log_line({LogLevel::info, "", {}}, false,
                               std::chrono::system_clock::time_point(std::chrono::milliseconds(ms)));
    };
    EXPECT_THAT(at(0), HasSubstr("1970-01-01T00:00:00.000Z"));
    EXPECT_THAT(at(-1), HasSubstr("1969-12-31T23:59:59.999Z"));
}

TEST(LogLine, EscapesControlCharactersAndBytesThatAreNoText) {
    const std::string message = "a\nb\r\t\x1B[31m\x7F" + std::string(1, '\0') + "\xC2\x9B\u2028\xFF\xE2\x82";
    EXPECT_THAT(text_of({LogLevel::info, message, {}}),
                EndsWith(" a\\nb\\r\\t\\x1b[31m\\x7f\\x00\\u009b\\u2028\\xff\\xe2\\x82\n"));
    EXPECT_EQ(json_of({LogLevel::info, message, {}})["message"],
              "a\nb\r\t\x1B[31m\x7F" + std::string(1, '\0') + "\xC2\x9B\u2028\\xff\\xe2\\x82");
    EXPECT_EQ(json_of({LogLevel::info, "", {"a\"\n\xFE", 0}})["session"], "a\"\n\\xfe");
}

TEST(LogLine, IsOneLineOfValidUtf8WhateverTheMessageIs) {
    unsigned state = 1;
    for (int i = 0; i < 2000; ++i) {
        std::string message;
        for (int n = 0; n < 20; ++n)
            message += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
        for (const bool json : {false, true}) {
            const std::string line = format_log_line({LogLevel::info, message, {message, 1}}, json, kTime);
            EXPECT_FALSE(find_invalid_utf8(line));
            EXPECT_EQ(line.find('\n'), line.size() - 1);
            EXPECT_TRUE(!json || nlohmann::json::accept(line)) << line;
        }
    }
}

TEST(LogLine, CutsWhatIsTooLong) {
    const std::string line = text_of({LogLevel::info, std::string(kMaxLogMessage + 5, 'x'), {}});
    EXPECT_THAT(line, EndsWith("xx... (5 bytes more)\n"));
    EXPECT_LT(text_of({LogLevel::info, "", {std::string(1000000, 's'), 0}}).size(), 1000u);
}

}  // namespace
}  // namespace headrace
