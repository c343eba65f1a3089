#include "llm/engine/token_filter.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using testing::HasSubstr;

/// A filter of the tiny model, and the logits of a next token.
class TokenFilterTest : public testing::Test {
protected:
    const std::shared_ptr<Engine> engine_ = tiny_engine();
    const Model& model_ = engine_->model();
    std::vector<float> logits_ = std::vector<float>(static_cast<std::size_t>(model_.vocabulary_size()), 1.0f);

    TokenFilter make(std::vector<std::string> forbidden, std::vector<std::string> required = {}) const {
        RequestSettings settings;
        settings.forbidden = std::move(forbidden);
        settings.required = std::move(required);
        auto filter = TokenFilter::create(model_, settings, {});
        if (!filter.ok()) throw std::runtime_error(filter.error().message);
        return std::move(filter).value();
    }
    void accept(TokenFilter& filter, const std::string& text) const {
        for (const llama_token token : model_.tokenize(text, false, false)) filter.accept(token);
    }
    bool is_away(llama_token token) const { return logits_[static_cast<std::size_t>(token)] == -INFINITY; }
};

TEST_F(TokenFilterTest, IsIdleWithoutTexts) {
    TokenFilter filter = make({});
    EXPECT_TRUE(filter.is_idle());
    filter.ban(5);
    EXPECT_FALSE(filter.is_idle());
    filter.mask(logits_.data());
    EXPECT_EQ(std::count(logits_.begin(), logits_.end(), -INFINITY), 1);
    EXPECT_TRUE(is_away(5));
}

TEST_F(TokenFilterTest, KeepsTokensAwayThatHaveAForbiddenTextInside) {
    TokenFilter filter = make({"e", "to"});
    filter.mask(logits_.data());
    int longer = 0;
    for (llama_token token = 0; token < model_.vocabulary_size(); ++token) {
        if (model_.ends_answer(token)) continue;
        const std::string piece = model_.piece(token);
        const bool is_bad = piece.find('e') != piece.npos || piece.find("to") != piece.npos;
        EXPECT_EQ(is_away(token), is_bad) << piece;
        longer += is_bad && piece.size() > 2;
    }
    EXPECT_GT(longer, 5);
}

TEST_F(TokenFilterTest, NeverLetsAnyWayOfSpellingCompleteAForbiddenText) {
    std::mt19937 random(5);
    const std::vector<std::string> forbidden = {"ana", "nan", "a b", "bb"};
    TokenFilter filter = make(forbidden);
    // Tokens of these letters alone, so that nearly every choice is a temptation.
    std::vector<llama_token> tempting;
    for (llama_token token = 0; token < model_.vocabulary_size(); ++token)
        if (const std::string piece = model_.piece(token);
            !piece.empty() && piece.find_first_not_of("abn ") == piece.npos)
            tempting.push_back(token);
    ASSERT_GT(tempting.size(), 4u);
    std::string text;
    int refused = 0;
    for (int step = 0; step < 3000; ++step) {
        std::fill(logits_.begin(), logits_.end(), 1.0f);
        filter.mask(logits_.data());
        const llama_token token = tempting[random() % tempting.size()];
        const std::string longer = text + model_.piece(token);
        const bool is_bad = std::any_of(forbidden.begin(), forbidden.end(),
                                        [&](const std::string& f) { return longer.find(f) != longer.npos; });
        const bool may_come = !is_away(token) && filter.admits(token, logits_.data());
        ASSERT_EQ(may_come, !is_bad) << longer;
        EXPECT_EQ(is_away(token), is_bad);
        refused += is_bad;
        if (is_bad) continue;
        filter.accept(token);
        text = longer;
    }
    EXPECT_GT(refused, 100);
    EXPECT_GT(text.size(), 100u);
}

TEST_F(TokenFilterTest, LooksThroughTheVocabularyAfterManyRefusals) {
    TokenFilter filter = make({"zq"});
    accept(filter, "z");
    filter.mask(logits_.data());
    std::vector<llama_token> bad;
    for (llama_token token = 0; token < model_.vocabulary_size(); ++token)
        if (model_.piece(token).starts_with("q")) bad.push_back(token);
    ASSERT_FALSE(bad.empty());
    for (int i = 0; i < 16; ++i) EXPECT_FALSE(filter.admits(bad.front(), logits_.data()));
    for (const llama_token token : bad) EXPECT_TRUE(is_away(token)) << model_.piece(token);
}

TEST_F(TokenFilterTest, KeepsTheEndsAwayUntilARequiredTextIsThere) {
    const llama_token end = llama_vocab_eot(model_.vocab());
    ASSERT_TRUE(model_.ends_answer(end));
    TokenFilter filter = make({}, {"never", "cat"});
    accept(filter, "a c");
    filter.mask(logits_.data());
    EXPECT_TRUE(is_away(end));
    EXPECT_TRUE(filter.release_ends(logits_.data())) << "nothing else was left";
    EXPECT_FALSE(is_away(end));
    EXPECT_FALSE(filter.release_ends(logits_.data())) << "they were given back already";
    accept(filter, "at");
    filter.mask(logits_.data());
    EXPECT_FALSE(is_away(end)) << "one of them is there, begun by other tokens than it ended with";
}

TEST_F(TokenFilterTest, SaysWhichTextsAreWrong) {
    RequestSettings settings;
    settings.required = {"fine", "\xff"};
    const auto filter = TokenFilter::create(model_, settings, {});
    ASSERT_FALSE(filter.ok());
    EXPECT_THAT(filter.error().message, HasSubstr("required_tokens: string 1 is not valid UTF-8"));
}

}  // namespace
}  // namespace headrace::llm
