#include <gmock/gmock.h>

#include <string>

#include "headrace/language_model.h"
#include "llm/small_ranker.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const Parameters kRanks = {{"embeddings", true}, {"pooling", "rank"}, {"threads", 1}};

TEST(Ranker, ScoresDocuments) {
    LanguageModel model = LanguageModel::load_bytes(small_ranker(), {.parameters = kRanks});
    ASSERT_EQ(model.kind(), ModelKind::scores);
    const RankScores ranked = model.rerank("a b", {"c d e", "f"});
    ASSERT_THAT(ranked.scores, SizeIs(2));
    EXPECT_EQ(ranked.tokens, 2 * 2 + 3 + 1 + 2 * 2);  // with two marks of each pair
    EXPECT_NEAR(model.rerank("a b", {"c d e"}).scores[0], ranked.scores[0], 1e-5);
    EXPECT_NEAR(model.rerank("a b", {"f"}).scores[0], ranked.scores[1], 1e-5);
    EXPECT_NE(ranked.scores[0], ranked.scores[1]);
    EXPECT_NE(model.rerank("g h", {"c d e"}).scores[0], ranked.scores[0]);
    EXPECT_THAT(model.rerank("a", {}).scores, SizeIs(0));
}

TEST(Ranker, SaysWhichDocumentIsTooLongAndGivesNoVectors) {
    LanguageModel model = LanguageModel::load_bytes(small_ranker(), {.parameters = kRanks});
    try {
        model.rerank("a", {"b", std::string(1 << 20, 'x')});
        FAIL();
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), Code::prompt_too_long);
        EXPECT_THAT(error.what(), HasSubstr("document 1 "));
    }
    try {
        model.embed({"a"});
        FAIL();
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), Code::unsupported);
    }
}

TEST(Ranker, NeedsAHeadForScores) {
    try {
        LanguageModel::load(tiny_model(), {.parameters = kRanks});
        FAIL();
    } catch (const Exception& error) {
        EXPECT_EQ(error.code(), Code::unsupported);
        EXPECT_EQ(error.parameter(), "pooling");
        EXPECT_THAT(error.what(), HasSubstr("tiny-chat-q8_0.gguf: the model ('llama') cannot rank"));
    }
}

}  // namespace
}  // namespace headrace::llm
