#include "llm/images/image_tokens.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

namespace headrace::llm {
namespace {

const std::string kOne = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOther = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee";

Tokens with(Tokens before, const Tokens& image, const Tokens& after) {
    before.insert(before.end(), image.begin(), image.end());
    before.insert(before.end(), after.begin(), after.end());
    return before;
}

TEST(ImageTokens, AreNoTokensOfATextAndNotTheMissingOne) {
    for (const llama_token token : image_tokens(std::string(64, 'f'), 4096, 4096)) {
        EXPECT_TRUE(is_image_token(token));
        EXPECT_NE(token, LLAMA_TOKEN_NULL);
    }
    EXPECT_FALSE(is_image_token(0));
    EXPECT_FALSE(begins_image(0));
}

TEST(ImageTokens, AreTheImagesOwn) {
    EXPECT_EQ(image_tokens(kOne, 20, 20), image_tokens(kOne, 20, 20));
    const Tokens one = image_tokens(kOne, 20, 20), other = image_tokens(kOther, 20, 20);
    EXPECT_NE(one, other);
    EXPECT_EQ(std::set<llama_token>(one.begin(), one.end()).size(), one.size());
}

TEST(ImageTokens, BeginOnce) {
    const Tokens tokens = image_tokens(kOne, 20, 20);
    EXPECT_TRUE(begins_image(tokens[0]));
    EXPECT_EQ(std::count_if(tokens.begin(), tokens.end(), begins_image), 1);
}

TEST(ImageTokens, TakeAsManyPositionsAsTheModelGivesThem) {
    const Tokens tokens = with({5, 6}, image_tokens(kOne, 20, 5), {7, 8});
    EXPECT_EQ(position_of(tokens, 2), 2u);
    EXPECT_EQ(position_of(tokens, 22), 7u);
    EXPECT_EQ(position_of(tokens, 24), 9u);
    EXPECT_EQ(position_of(tokens, 30), 15u) << "behind the last one";
    EXPECT_EQ(position_of(with({5}, image_tokens(kOne, 20, 20), {}), 21), 21u);
}

TEST(ImageTokens, AreNotCut) {
    const Tokens tokens = with({5, 6}, with(image_tokens(kOne, 3, 3), image_tokens(kOther, 3, 3), {}), {7});
    EXPECT_EQ(without_cut_image(tokens, 1), 1u);
    EXPECT_EQ(without_cut_image(tokens, 2), 2u) << "in front of an image";
    EXPECT_EQ(without_cut_image(tokens, 4), 2u);
    EXPECT_EQ(without_cut_image(tokens, 5), 5u) << "between two";
    EXPECT_EQ(without_cut_image(tokens, 7), 5u);
    EXPECT_EQ(without_cut_image(tokens, 8), 8u);
    EXPECT_EQ(without_cut_image(tokens, 9), 9u);
}

}  // namespace
}  // namespace headrace::llm
