#include "doors/serve/request/errors.h"

#include <gtest/gtest.h>

namespace headrace::serve {
namespace {

TEST(Renamed, TakesTheLongestBeginningThatTheClientCallsOtherwise) {
    const FieldNames names = {
        {"messages", "input"}, {"messages[2]", "input[5]"}, {"messages[2].tool_calls[0]", "input[6]"}};
    const std::pair<const char*, const char*> fields[] = {
        {"messages", "input"},
        {"messages[1].content", "input[1].content"},
        {"messages[2].content[0]", "input[5].content[0]"},
        {"messages[2].tool_calls[0].arguments", "input[6].arguments"},
        {"messages[20]", "input[20]"},
        {"temperature", "temperature"},
        {"", ""}};
    for (const auto& [given, shown] : fields) {
        const ApiError error = renamed(wrong_field(given, "is wrong"), names);
        EXPECT_EQ(error.field, shown);
        if (*given) {
            EXPECT_EQ(error.what(), "'" + std::string(shown) + "' is wrong");
        }
    }
}

}  // namespace
}  // namespace headrace::serve
