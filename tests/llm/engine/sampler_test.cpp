#include "llm/engine/sampler.h"

#include <common/sampling.h>
#include <gmock/gmock.h>

#include <random>

#include "llm/held_heap.h"
#include "llm/json.h"
#include "llm/parameters/parameters.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using testing::HasSubstr;
using testing::Not;

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
    settings.sampling.grammar_triggers = {{GrammarTrigger::Type::pattern, pattern}};
    return settings;
}

TEST(Sampler, SaysWhatIsWrongWithAGrammar) {
    EXPECT_EQ(refusal(with_grammar("root ::= [a-z]+")), "");
    EXPECT_THAT(refusal(with_grammar("root ::= (")), HasSubstr("line 1, column 11: ')' is expected"));
    EXPECT_THAT(refusal(with_grammar("root ::= root \"a\"")), HasSubstr("left recursion"));
    EXPECT_EQ(refusal(with_grammar("root ::= <|im_end|>")), "");
    EXPECT_THAT(refusal(with_grammar("root ::= <no token>")), HasSubstr("'<no token>' is not one token"));
    EXPECT_EQ(refusal(with_grammar("root ::= <[5]>")), "");
    EXPECT_THAT(refusal(with_grammar("root ::= <[99999]>")), HasSubstr("'<[99999]>' is not one token"));
    EXPECT_THAT(refusal(with_grammar("start ::= \"a\"")), HasSubstr("no rule 'root'"));
    EXPECT_THAT(refusal(with_grammar("%llguidance {}")), HasSubstr("in GBNF"));
    EXPECT_EQ(refusal(with_trigger("a+")), "");
    EXPECT_THAT(refusal(with_trigger("(")), HasSubstr("sampling: "));
    RequestSettings eager = with_trigger("(");
    eager.grammar_lazy = false;
    EXPECT_EQ(refusal(eager), "") << "its triggers are not read";
}

common_params_sampling params_of(const SamplingSettings& sampling) {
    RequestSettings settings;
    settings.sampling = sampling;
    Result<common_params_sampling> params = sampling_params(tiny_engine()->model(), settings);
    EXPECT_TRUE(params.ok()) << params.error().message;
    return std::move(params).value();
}

common_params_sampling params_of(const Json& parameters) {
    Warnings warnings;
    const auto settings = with_parameters({}, parameters.dump(), Level::request, warnings);
    EXPECT_TRUE(settings.ok() && warnings.empty()) << parameters.dump();
    return params_of(settings.value().request.sampling);
}

TEST(SamplingSettings, HaveTheDefaultsOfLlamaCpp) {
    const SamplingSettings ours;
    const common_params_sampling theirs;
#define HR_PARAMETER(type, field, ...) EXPECT_EQ(ours.field, theirs.field) << #field;
#define HR_FIELD(...)
#define HR_CUSTOM(...)
#include "llm/settings/sampling.inc"
#undef HR_PARAMETER
#undef HR_FIELD
#undef HR_CUSTOM
    const common_params_sampling converted = params_of(ours);
    EXPECT_EQ(converted.samplers, theirs.samplers);
    EXPECT_EQ(converted.logit_bias.size(), theirs.logit_bias.size());
    EXPECT_EQ(converted.grammar_triggers.size(), theirs.grammar_triggers.size());
    EXPECT_EQ(converted.generation_prompt, theirs.generation_prompt);
    EXPECT_EQ(converted.reasoning_budget_start, theirs.reasoning_budget_start);
    EXPECT_EQ(converted.reasoning_budget_end, theirs.reasoning_budget_end);
    EXPECT_EQ(converted.reasoning_budget_forced, theirs.reasoning_budget_forced);
    EXPECT_EQ(converted.grammar.grammar, theirs.grammar.grammar);
    EXPECT_EQ(converted.grammar_lazy, theirs.grammar_lazy);
}

TEST(SamplingSettings, ReachLlamaCppUnderItsOwnNamesAndLetters) {
    for (int number = COMMON_SAMPLER_TYPE_DRY; number <= COMMON_SAMPLER_TYPE_ADAPTIVE_P; ++number) {
        const auto type = static_cast<common_sampler_type>(number);
        const std::string name = common_sampler_type_to_str(type);
        if (name.empty()) continue;  // a number that llama.cpp does not use any more
        const std::vector<common_sampler_type> expected = {type};
        EXPECT_EQ(params_of(Json{{"samplers", Json::array({name})}}).samplers, expected) << name;
        EXPECT_EQ(params_of(Json{{"samplers", std::string(1, common_sampler_type_to_chr(type))}}).samplers,
                  expected)
            << name;
    }
}

TEST(SamplingSettings, AreWholeInWhatLlamaCppGets) {
    const common_params_sampling params = params_of(Json{
        {"temp", 0.25}, {"seed", 7}, {"logit_bias", {{"5", -1.5}}}, {"dry_sequence_breakers", {"x", "y"}}});
    EXPECT_EQ(params.temp, 0.25f);
    EXPECT_EQ(params.seed, 7u);
    ASSERT_EQ(params.logit_bias.size(), 1u);
    EXPECT_EQ(params.logit_bias[0].token, 5);
    EXPECT_EQ(params.logit_bias[0].bias, -1.5f);
    EXPECT_EQ(params.dry_sequence_breakers, (std::vector<std::string>{"x", "y"}));
    SamplingSettings triggered;
    using enum GrammarTrigger::Type;
    triggered.grammar_triggers = {{token, "t", 3}, {word, "w"}, {pattern, "p"}, {pattern_full, "f"}};
    const auto triggers = params_of(triggered).grammar_triggers;
    ASSERT_EQ(triggers.size(), 4u);
    EXPECT_EQ(triggers[0].type, COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN);
    EXPECT_EQ(triggers[0].token, 3);
    EXPECT_EQ(triggers[1].type, COMMON_GRAMMAR_TRIGGER_TYPE_WORD);
    EXPECT_EQ(triggers[1].value, "w");
    EXPECT_EQ(triggers[1].token, LLAMA_TOKEN_NULL);
    EXPECT_EQ(triggers[2].type, COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN);
    EXPECT_EQ(triggers[3].type, COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL);
}

TEST(SamplingSettings, GiveWayToWhatTheChatTemplateDemands) {
    RequestSettings settings = with_grammar("root ::= \"a\"");
    settings.demands.grammar = "root ::= \"b\"";
    settings.demands.generation_prompt = "<think>";
    settings.demands.thinking_start = {1};
    settings.demands.thinking_ends = {{2}, {3, 4}};
    settings.demands.thinking_cut_off = {5};
    const auto params = sampling_params(tiny_engine()->model(), settings);
    ASSERT_TRUE(params.ok()) << params.error().message;
    EXPECT_EQ(params.value().grammar.type, COMMON_GRAMMAR_TYPE_TOOL_CALLS);
    EXPECT_EQ(params.value().grammar.grammar, "root ::= \"b\"");
    EXPECT_EQ(params.value().generation_prompt, "<think>");
    EXPECT_EQ(params.value().reasoning_budget_start, llama_tokens({1}));
    EXPECT_EQ(params.value().reasoning_budget_end, (std::vector<llama_tokens>{{2}, {3, 4}}));
    EXPECT_EQ(params.value().reasoning_budget_forced, llama_tokens({5}));
}

/// A few characters of a grammar are taken out, doubled or replaced.
std::string damaged(std::string grammar, std::mt19937& random) {
    const std::string pieces = "()[]{}<>!\"\\|*+?.,:=-_#\n 019axU";
    for (unsigned i = 0, count = 1 + random() % 3; i < count && !grammar.empty(); ++i) {
        const std::size_t at = random() % grammar.size();
        switch (random() % 3) {
            case 0: grammar.erase(at, 1); break;
            case 1: grammar.insert(at, 1, pieces[random() % pieces.size()]); break;
            default: grammar[at] = pieces[random() % pieces.size()];
        }
    }
    return grammar;
}

TEST(Sampler, FindsInAGrammarWhatLlamaCppTellsOnlyStderr) {
    const std::string sound[] = {
        "root ::= (\"a\" | [b-d\\]]{2,4} x-1)* # end\nx-1 ::= \"\\x41\\n\"? |\n \".\" .+ ",
        "root ::=\n <[5]> !<|im_end|> ( y\n | \"\" )\r\ny ::= [^\\u00e9-]{3,} \"q\"{0}",
        "root ::= ((\"a\"{40}){40} z{ 1 , 2 })?\nz ::= \"\\U0001F600 \xC3\xA9\"\n",
    };
    const auto engine = tiny_engine();
    const llama_vocab* vocab = engine->model().vocab();
    const auto llama_takes = [&](const std::string& grammar) {
        testing::internal::CaptureStderr();
        llama_sampler* sampler = llama_sampler_init_grammar(vocab, grammar.c_str(), "root");
        testing::internal::GetCapturedStderr();
        if (sampler) llama_sampler_free(sampler);
        return sampler != nullptr;
    };
    std::mt19937 random(3);
    int taken = 0, refused = 0;
    for (int i = 0; i < 1000; ++i) {
        const std::string grammar = i < 3 ? sound[i] : damaged(sound[i % 3], random);
        testing::internal::CaptureStderr();
        const std::string why = refusal(with_grammar(grammar));
        EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("parsing grammar"))) << grammar;
        // {5,2} and {9000} would be the end of this process; optional parts in a row are a limit of ours.
        const bool is_ours = why.find("a repetition from") != why.npos || why.find("possible") != why.npos ||
                             why.find("in a row") != why.npos || why.find("the range") != why.npos ||
                             why.find("<[") != why.npos;
        if (!is_ours) {
            EXPECT_EQ(why.empty(), llama_takes(grammar)) << grammar << "\n" << why;
        }
        (why.empty() ? taken : refused) += 1;
    }
    EXPECT_GT(taken, 100);
    EXPECT_GT(refused, 100);
}

TEST(Sampler, KeepsNothingOfARefusedGrammar) {
    const auto engine = tiny_engine();  // for all of them
    for (const RequestSettings& settings :
         {with_grammar("root ::= ("), with_grammar("root ::= root"), with_trigger("(")}) {
        refusal(settings);  // what the first one sets up for good
        const std::size_t before = held_heap();
        for (int i = 0; i < 300; ++i) refusal(settings);
        EXPECT_LT(held_heap(), before + 300 * 40) << settings.grammar;
    }
}

}  // namespace
}  // namespace headrace::llm
