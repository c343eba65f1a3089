#include "near_tie.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/tiny_model.h"

namespace headrace::wasi_nn {

using namespace llm;
namespace {

using testing::HasSubstr;
using testing::Optional;

constexpr const char* kColdest = R"("temp": 0)";

std::vector<TokenProbability> row_of(std::initializer_list<std::pair<llama_token, float>> tokens) {
    std::vector<TokenProbability> row;
    for (const auto& [token, probability] : tokens)
        row.push_back({.token = token, .probability = probability});
    return row;
}

TEST(NearTie, ExcusesATokenThatIsAlmostAsLikely) {
    const auto row = row_of({{7, 0.41f}, {8, 0.39f}, {9, 0.2f}});
    EXPECT_EQ(why_no_near_tie(row, 8, 7, 3, kColdest), std::nullopt);
    EXPECT_THAT(why_no_near_tie(row, 9, 7, 3, kColdest), Optional(HasSubstr("token 3 is 9 in place of 7")));
    EXPECT_NE(why_no_near_tie(row, 5, 7, 3, kColdest), std::nullopt) << "it is not in the row at all";
    EXPECT_NE(why_no_near_tie(row, 7, 9, 3, kColdest), std::nullopt) << "a grammar forbids the likelier one";
}

TEST(NearTie, ExcusesASampledTokenBesideTheNumberThatWasDrawn) {
    // With seed 1 the first number drawn is 0.997, the second 0.933.
    const auto row = row_of({{7, 0.6f}, {8, 0.36f}, {9, 0.04f}});
    const char* const sampled = R"("temp": 1, "top_k": 4, "seed": 1)";
    EXPECT_EQ(why_no_near_tie(row, 9, 8, 1, sampled), std::nullopt);
    EXPECT_EQ(why_no_near_tie(row, 8, 9, 0, sampled), std::nullopt) << "0.037 from its part's end";
    EXPECT_THAT(why_no_near_tie(row, 7, 8, 1, sampled), Optional(HasSubstr("0.333 beside it")));
    // Rounding changes the order of tokens that are almost as likely.
    const auto flat = row_of({{7, 0.8f}, {8, 0.07f}, {9, 0.066f}, {10, 0.064f}});
    EXPECT_EQ(why_no_near_tie(flat, 8, 10, 0, sampled), std::nullopt);
    EXPECT_NE(why_no_near_tie(flat, 7, 10, 0, sampled), std::nullopt);
}

class WhyWrong : public testing::Test {
protected:
    void SetUp() override {
        service = std::move(ContextTable::create(R"({"log_level": "none"})")).value();
        graph = service->load(tiny_model(), R"({"threads": 1, "n_ctx": 512, "n_predict": 24})").value();
        const auto context = service->open(graph).value();
        for (Turn& turn : turns) {
            const Answer reply = service
                                     ->infer(context, turn.text,
                                             fmt::format(R"({{{}, "return_tokens": true}})", turn.parameters))
                                     .value();
            turn.answer = reply.text;
            turn.tokens = tokens_of(reply.metadata);
        }
    }

    std::unique_ptr<ContextTable> service;
    GraphId graph = 0;
    std::vector<Turn> turns{
        {"My name is Ada.", kColdest, "", {}},
        {"What is my name?", kColdest, "", {}},
        {"My name is Leo.", kColdest, "", {}},
        {"What is my name?", kColdest, "", {}},
        {"What is 2+3?", R"("temp": 0.7, "seed": 3, "top_k": 4, "top_p": 1, "min_p": 0)", "", {}}};
};

TEST_F(WhyWrong, FindsTheAnswerOfAnotherConversation) {
    ASSERT_EQ(turns[1].answer, "Your name is Ada.");
    ASSERT_EQ(turns[3].answer, "Your name is Leo.");
    EXPECT_THAT(why_wrong(*service, graph, turns, 1, turns[3].tokens), Optional(HasSubstr("in place of")));
    EXPECT_THAT(why_wrong(*service, graph, turns, 4, turns[3].tokens), Optional(HasSubstr("beside it")));
}

TEST_F(WhyWrong, FindsAnAnswerThatEndsElsewhere) {
    Tokens cut = turns[1].tokens;
    cut.pop_back();
    EXPECT_THAT(why_wrong(*service, graph, turns, 1, cut), Optional(HasSubstr("begin as the reference's")));
}

TEST_F(WhyWrong, AsksWithTheHistoryThatTheReferenceHad) {
    turns[0].text = "My name is Mia.";
    Tokens other = turns[1].tokens;
    other.back() += 1;
    EXPECT_THAT(why_wrong(*service, graph, turns, 1, other),
                Optional(HasSubstr("alone is not answered as before")));
}

}  // namespace
}  // namespace headrace::wasi_nn
