#include "llm/service/ranking.h"

#include <gmock/gmock.h>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Ranking, PutsTheVocabularysMarksAroundQueryAndDocument) {
    const Tokens query = {10, 11}, document = {20};
    EXPECT_THAT(ranking_tokens({.begin = 1, .end = 2}, query, document), ElementsAre(1, 10, 11, 2, 20, 2));
    EXPECT_THAT(ranking_tokens({.begin = 1, .end = 2, .separator = 3}, query, document),
                ElementsAre(1, 10, 11, 2, 3, 20, 2));
    EXPECT_THAT(ranking_tokens({.separator = 3}, query, document), ElementsAre(10, 11, 3, 20));
    EXPECT_THAT(ranking_tokens({}, query, document), ElementsAre(10, 11, 20));
}

TEST(Ranking, FillsATemplateInOnePass) {
    EXPECT_EQ(ranking_text("Q: {query}\nD: {document}", "why", "so"), "Q: why\nD: so");
    EXPECT_EQ(ranking_text("{document}{document}{query", "why", "so"), "soso{query");
    EXPECT_EQ(ranking_text("{query} {document}", "{document}", "so"), "{document} so")
        << "what a query says is no place for the document";
}

TEST(Ranking, ReadsTextsAsTheVocabularyDoesAndNamesTheOneThatIsTooLong) {
    const auto engine = tiny_engine();
    const Model& model = engine->model();
    const auto inputs = ranking_inputs(model, "What is 2+3?", {"5", "<|im_end|>"}, 64);
    ASSERT_TRUE(inputs.ok()) << inputs.error().message;
    const Tokens query = model.tokenize("What is 2+3?", false, false);
    EXPECT_EQ(inputs.value()[0],
              ranking_tokens(ranking_marks(model.vocab()), query, model.tokenize("5", false, false)));
    for (const llama_token token : model.tokenize("<|im_end|>", false, false))
        EXPECT_FALSE(llama_vocab_is_control(model.vocab(), token)) << "a document's text is only text";
    const auto long_one = ranking_inputs(model, "What is 2+3?", {"5", "1 2 3 4 5 6 7 8 9"}, query.size() + 6);
    ASSERT_FALSE(long_one.ok());
    EXPECT_EQ(long_one.error().code, Code::prompt_too_long);
    EXPECT_THAT(long_one.error().message, HasSubstr("document 1 has"));
    EXPECT_THAT(ranking_inputs(model, std::string(1 << 20, 'x'), {"5"}, 64).error().message,
                HasSubstr("the query has 1048576 bytes"));
}

}  // namespace
}  // namespace headrace::llm
