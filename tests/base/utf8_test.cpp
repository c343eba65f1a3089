#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

struct Case {
    std::string bytes;
    char32_t value;
    std::size_t size;
};

TEST(FirstCodePoint, ReadsCharactersOfEverySize) {
    for (const Case& c : {Case{"a", U'a', 1}, Case{"é", U'é', 2}, Case{"€", U'€', 3}, Case{"😀", U'😀', 4},
                          Case{std::string("\0", 1), 0, 1}, Case{"\xF4\x8F\xBF\xBF", 0x10FFFF, 4}}) {
        const auto point = first_code_point(c.bytes + "z");
        ASSERT_TRUE(point);
        EXPECT_TRUE(point->is_valid);
        EXPECT_EQ(point->value, c.value);
        EXPECT_EQ(point->size, c.size);
    }
}

TEST(FirstCodePoint, IsNoneWhereMoreBytesMayCompleteTheCharacter) {
    for (const std::string start : {"", "\xC3", "\xE2", "\xE2\x82", "\xF0\x9F\x98", "\xED\x9F"})
        EXPECT_FALSE(first_code_point(start)) << start.size();
}

TEST(FirstCodePoint, TakesMalformedBytesUpToWhereACharacterMayStart) {
    for (const Case& c : {Case{"\x80 stray continuation", 0xFFFD, 1}, Case{"\xC0\x80 overlong", 0xFFFD, 1},
                          Case{"\xE0\x9F\xBF overlong", 0xFFFD, 1}, Case{"\xED\xA0\x80 surrogate", 0xFFFD, 1},
                          Case{"\xF4\x90\x80\x80 beyond Unicode", 0xFFFD, 1}, Case{"\xFF", 0xFFFD, 1},
                          Case{"\xE2\x82 cut", 0xFFFD, 2}, Case{"\xF0\x9F\x98 cut", 0xFFFD, 3}}) {
        const auto point = first_code_point(c.bytes);
        ASSERT_TRUE(point) << c.bytes;
        EXPECT_FALSE(point->is_valid) << c.bytes;
        EXPECT_EQ(point->value, c.value);
        EXPECT_EQ(point->size, c.size) << c.bytes;
    }
}

TEST(FindInvalidUtf8, NamesTheFirstByteThatIsWrong) {
    EXPECT_FALSE(find_invalid_utf8("héllo 😀"));
    EXPECT_EQ(find_invalid_utf8("ab\xFFz"), 2u);
    EXPECT_EQ(find_invalid_utf8("ab\xE2\x82"), 2u) << "a cut character at the end is invalid, too";
    EXPECT_EQ(find_invalid_utf8("é\xED\xA0\x80"), 2u);
}

TEST(ValidUtf8, ReplacesWhatIsNoCharacter) {
    EXPECT_EQ(valid_utf8("héllo 😀"), "héllo 😀");
    EXPECT_EQ(valid_utf8("a\xFFz\xE2\x82"), "a\xEF\xBF\xBDz\xEF\xBF\xBD");
}

}  // namespace
}  // namespace headrace
