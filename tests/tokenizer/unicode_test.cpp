#include "tokenizer/unicode.h"

#include <gtest/gtest.h>

namespace headrace::text {
namespace {

TEST(Unicode, KnowsWhatCharactersAre) {
    EXPECT_TRUE(is(U'a', kLetter | kNumber));
    EXPECT_TRUE(is(0x3000, kSpace)) << "the ideographic space";
    EXPECT_TRUE(is(0x301, kNonspacingMark));
    EXPECT_FALSE(is(0x903, kNonspacingMark)) << "a spacing mark";
    EXPECT_TRUE(is(U'$', kBertPunctuation)) << "ASCII's symbols count";
    EXPECT_TRUE(is(0, kBertRemoved));
    EXPECT_TRUE(is(0xE000, kBertRemoved)) << "for private use";
}

TEST(Unicode, PutsTextsIntoNormalForms) {
    EXPECT_EQ(normal_form("e\u0301", NormalForm::nfc), "\u00e9");
    EXPECT_EQ(normal_form("\u1e69", NormalForm::nfd), "s\u0323\u0307");
    EXPECT_EQ(normal_form("s\u0307\u0323", NormalForm::nfc), "\u1e69") << "marks in another order";
    EXPECT_EQ(normal_form("\uac01", NormalForm::nfd), "\u1100\u1161\u11a8");
    EXPECT_EQ(normal_form("\u1100\u1161\u11a8", NormalForm::nfc), "\uac01");
    EXPECT_EQ(normal_form("\ufb01\u2460", NormalForm::nfkc), "fi1");
    EXPECT_EQ(normal_form("\u0958", NormalForm::nfc), "\u0915\u093c") << "excluded from composition";
}

TEST(Unicode, LowersCharacterByCharacter) {
    std::string out;
    append_lowercase(out, 0x130);
    append_lowercase(out, U'\u03a3');
    EXPECT_EQ(out, "i\u0307\u03c3");
}

std::size_t first_cluster(std::string_view text) { return grapheme_end(text, 0); }

TEST(Unicode, FindsTheEndsOfGraphemes) {
    EXPECT_EQ(first_cluster("a\u0301b"), 3u);
    EXPECT_EQ(first_cluster("\r\nx"), 2u);
    EXPECT_EQ(first_cluster("\u0001\u0301"), 1u) << "a control character stands alone";
    EXPECT_EQ(first_cluster("\u1100\u1161\u11a8x"), 9u);
    EXPECT_EQ(first_cluster("\u00a9\u200d\u00aex"), 7u) << "two pictographs";
    EXPECT_EQ(first_cluster("\U0001f1e9\U0001f1ea\U0001f1eb"), 8u) << "a flag";
    EXPECT_EQ(first_cluster("\u0915\u094d\u0915\u0301x"), 11u) << "a conjunct";
}

TEST(Unicode, ReadsAndWritesCharacters) {
    for (const char32_t c : {U'a', U'\u00e9', U'\u20ac', U'\U0001f600'}) {
        std::string text;
        append(text, c);
        std::size_t at = 0;
        EXPECT_EQ(next_character(text, at), c);
        EXPECT_EQ(at, text.size());
        EXPECT_EQ(previous_character(text, text.size()), 0u);
    }
}

}  // namespace
}  // namespace headrace::text
