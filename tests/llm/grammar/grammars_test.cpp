#include "llm/grammar/grammars.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "llm/schema/schema_grammar.h"
#include "llm/structured_schemas.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using LlamaGrammar = std::unique_ptr<llama_sampler, decltype(&llama_sampler_free)>;

/// What llama.cpp's own grammar leaves of all tokens.
std::vector<bool> llama_allowed(llama_sampler& grammar, int vocabulary) {
    std::vector<llama_token_data> all;
    for (llama_token token = 0; token < vocabulary; ++token) all.push_back({token, 1.0f, 0.0f});
    llama_token_data_array array = {all.data(), all.size(), -1, false};
    llama_sampler_apply(&grammar, &array);
    std::vector<bool> allowed;
    for (const llama_token_data& entry : all) allowed.push_back(entry.logit != -INFINITY);
    return allowed;
}

std::vector<bool> our_allowed(const GrammarPlace& place, int vocabulary) {
    std::vector<float> logits(static_cast<std::size_t>(vocabulary), 1.0f);
    place.mask(logits.data());
    std::vector<bool> allowed;
    for (const float logit : logits) allowed.push_back(logit != -INFINITY);
    return allowed;
}

class GrammarsTest : public testing::Test {
protected:
    GrammarsTest() : engine(tiny_engine()), vocab(engine->model().vocab()), grammars(vocab) {}

    /// Random texts of a grammar: at each token both let the same ones come next.
    void compare(const std::string& text, int answers, int tokens) {
        const std::shared_ptr<GrammarAutomaton> automaton = grammars.automaton(text);
        ASSERT_NE(automaton, nullptr) << text;
        const int size = engine->model().vocabulary_size();
        for (int answer = 0; answer < answers; ++answer) {
            const LlamaGrammar theirs(llama_sampler_init_grammar(vocab, text.c_str(), "root"),
                                      &llama_sampler_free);
            ASSERT_NE(theirs, nullptr) << text;
            GrammarPlace ours(grammars, automaton);
            std::string taken;
            for (int i = 0; i < tokens; ++i) {
                const std::vector<bool> allowed = llama_allowed(*theirs, size);
                ASSERT_EQ(our_allowed(ours, size), allowed) << text << "\nbehind " << taken;
                const llama_token token = draw(allowed);
                if (token < 0 || llama_vocab_is_eog(vocab, token)) break;
                for (const llama_token other : {token, static_cast<llama_token>(random() % allowed.size())})
                    ASSERT_EQ(ours.admits(other), allowed[static_cast<std::size_t>(other)])
                        << text << "\nbehind " << taken;
                taken += token_text(vocab, token);
                llama_sampler_accept(theirs.get(), token);
                ASSERT_TRUE(ours.accept(token)) << taken;
                ++compared;
            }
        }
    }

    llama_token draw(const std::vector<bool>& allowed) {
        std::vector<llama_token> left;
        for (std::size_t token = 0; token < allowed.size(); ++token)
            if (allowed[token]) left.push_back(static_cast<llama_token>(token));
        return left.empty() ? -1 : left[random() % left.size()];
    }

    std::shared_ptr<Engine> engine;
    const llama_vocab* vocab;
    Grammars grammars;
    std::mt19937 random{11};
    int compared = 0;
};

TEST_F(GrammarsTest, LetTheSameTokensComeNextAsLlamaCppForThirtySchemas) {
    for (const auto& [name, schema] : structured_schemas()) {
        SCOPED_TRACE(name);
        compare(schema_grammar(schema).value(), 4, 60);
    }
    EXPECT_GT(compared, 1500);
}

TEST_F(GrammarsTest, LetTheSameTokensComeNextForAllThatGbnfHas) {
    for (const std::string text : {
             "root ::= (\"a\" | [b-d\\]]{2,4} x-1)* # end\nx-1 ::= \"\\x41\\n\"? |\n \".\" .+ ",
             "root ::= ( y\n | \"\" )\r\ny ::= [^\\u00e9-]{3,} \"q\"{0} [] \"z\"",
             "root ::= ((\"a\"{4}){3} z{ 1 , 2 })? \"end\"\nz ::= \"\\U0001F600 \xC3\xA9\"\n",
             "root ::= [\xC3\xA0-\xC3\xBF\xE4\xB8\x80-\xE9\xBF\xBF]+ [^a-z\xC3\xA9]* .",
             "root ::= a\na ::= \"x\"\na ::= [\\U0001F300-\\U0001FAFF]+ | \"caf\xC3\xA9\"?",
             "root ::= \"ab\"* \"abc\" | ((\"a\"?)*)* \"b\"",
         }) {
        compare(text, 12, 40);
    }
    EXPECT_GT(compared, 400);
}

TEST_F(GrammarsTest, LeaveSingleTokensToLlamaCpp) {
    EXPECT_EQ(grammars.automaton("root ::= \"a\" <[5]>"), nullptr);
    EXPECT_EQ(grammars.automaton("root ::= (\"a\" | !<[5]>)+"), nullptr);
}

TEST_F(GrammarsTest, AreSharedByAnswersWithTheSameText) {
    EXPECT_EQ(grammars.find("root ::= \"a\""), nullptr);
    const auto first = grammars.automaton("root ::= \"a\"");
    EXPECT_EQ(grammars.automaton("root ::= \"a\""), first);
    EXPECT_EQ(grammars.find("root ::= \"a\""), first);
    for (int i = 0; i < 40; ++i) grammars.automaton("root ::= \"a\"{" + std::to_string(i) + ",100}");
    EXPECT_EQ(grammars.find("root ::= \"a\""), nullptr) << "the last ones are kept";
}

TEST_F(GrammarsTest, GoOnInANewAutomatonWhereOneIsFull) {
    const std::string text = "root ::= \"[\" root* \"]\" | [0-9]+ \",\"";
    const auto full = grammars.automaton(text);
    const auto place = full->after(full->start(), "[[[12,[");
    ASSERT_TRUE(place.has_value());
    const auto fresh = grammars.replace(full);
    EXPECT_NE(fresh, full);
    EXPECT_EQ(grammars.replace(full), fresh) << "by all its answers";
    EXPECT_EQ(grammars.find(text), fresh);
    const auto moved = fresh->take_over(*full, *place);
    EXPECT_EQ(*fresh->allowed(moved), *full->allowed(*place));
    EXPECT_TRUE(fresh->after(moved, "3,]]]]").has_value());
    EXPECT_FALSE(fresh->after(moved, "3,]]]]]").has_value());
    EXPECT_FALSE(full->is_full());
}

}  // namespace
}  // namespace headrace::llm
