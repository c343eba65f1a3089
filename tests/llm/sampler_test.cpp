#include "llm/sampler.h"

#include <gmock/gmock.h>

#include "held_heap.h"
#include "tiny_model.h"

namespace headrace::llm {
namespace {

using testing::HasSubstr;

/// Why a sampler cannot be made; empty when it can.
std::string refusal(const RequestSettings& settings) {
    const auto sampler = Sampler::create(tiny_engine()->model(), settings, {});
    if (sampler.ok()) return "";
    EXPECT_EQ(sampler.error().code, Code::invalid_argument);
    return sampler.error().message;
}

RequestSettings with_grammar(const std::string& grammar) {
    RequestSettings settings = tiny_settings().request;
    settings.grammar = grammar;
    return settings;
}

/// Starts the grammar at what a pattern matches.
RequestSettings with_trigger(const std::string& pattern) {
    RequestSettings settings = with_grammar("root ::= \"a\"");
    settings.grammar_lazy = true;
    settings.sampling.grammar_triggers = {{COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN, pattern, LLAMA_TOKEN_NULL}};
    return settings;
}

TEST(Sampler, SaysWhatIsWrongWithAGrammar) {
    EXPECT_EQ(refusal(with_grammar("root ::= [a-z]+")), "");
    EXPECT_THAT(refusal(with_grammar("root ::= (")), HasSubstr("cannot parse it"));
    EXPECT_THAT(refusal(with_grammar("start ::= \"a\"")), HasSubstr("no rule 'root'"));
    EXPECT_THAT(refusal(with_grammar("%llguidance {}")), HasSubstr("in GBNF"));
    EXPECT_EQ(refusal(with_trigger("a+")), "");
    EXPECT_THAT(refusal(with_trigger("(")), HasSubstr("sampling: "));
    RequestSettings eager = with_trigger("(");
    eager.grammar_lazy = false;
    EXPECT_EQ(refusal(eager), "") << "its triggers are not read";
}

TEST(Sampler, KeepsNothingOfARefusedGrammar) {
    const auto engine = tiny_engine();  // for all of them
    for (const RequestSettings& settings :
         {with_grammar("root ::= ("), with_grammar("%llguidance {}"), with_trigger("(")}) {
        refusal(settings);  // what the first one sets up for good
        const std::size_t before = held_heap();
        for (int i = 0; i < 300; ++i) refusal(settings);
        EXPECT_LT(held_heap(), before + 300 * 40) << settings.grammar;
    }
}

}  // namespace
}  // namespace headrace::llm
