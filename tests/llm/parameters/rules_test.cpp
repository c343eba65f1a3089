// Parameters that depend on each other or on the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/parameters/parameters.h"

namespace headrace::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct ReadRules {
    Warnings warnings;
    Settings settings;
    std::string error;

    explicit ReadRules(std::string_view json, const Settings& base = {}) {
        auto result = with_parameters(base, json, Level::model, warnings);
        if (result.ok())
            settings = std::move(result).value();
        else
            error = result.error().message;
    }
    std::string warned() const { return warnings.empty() ? error : warnings.front().message; }
};

TEST(ParameterRules, AGrammarExcludesASchema) {
    EXPECT_EQ(ReadRules(R"({"grammar": "root ::= \"a\"", "json_schema": {}})").error,
              "'grammar' and 'json_schema' exclude each other; give one of them");
    EXPECT_THAT(ReadRules(R"({"grammar": "x", "response_format": {"type": "json_object"}})").error,
                HasSubstr("exclude"));
    EXPECT_EQ(ReadRules(R"({"grammar": "", "json_schema": {}})").error, "");
}

TEST(ParameterRules, AGrammarReplacesAnInheritedSchemaAndTheOtherWayRound) {
    const ReadRules schema(R"({"json_schema": {}})");
    const ReadRules grammar(R"({"grammar": "root ::= \"a\""})", schema.settings);
    EXPECT_EQ(grammar.settings.request.json_schema, "");
    EXPECT_EQ(grammar.warned(), "'grammar' replaces the inherited json_schema");
    const ReadRules again(R"({"json_schema": {}})", grammar.settings);
    EXPECT_EQ(again.settings.request.grammar, "");
    EXPECT_EQ(again.warned(), "'json_schema' replaces the inherited grammar");
}

TEST(ParameterRules, ALazyGrammarNeedsTriggers) {
    EXPECT_EQ(ReadRules(R"({"grammar_lazy": true, "grammar": "x"})").error,
              "'grammar_lazy' is true, but nothing starts the grammar; give 'grammar_triggers'");
    EXPECT_THAT(ReadRules(R"({"grammar_lazy": true, "grammar": "x", "grammar_triggers": ["a"]})").warnings,
                IsEmpty());
    EXPECT_THAT(ReadRules(R"({"grammar_triggers": ["a"]})").warned(),
                HasSubstr("no effect unless 'grammar_lazy'"));
    EXPECT_THAT(ReadRules(R"({"grammar_lazy": true, "grammar_triggers": ["a"]})").warned(),
                HasSubstr("no effect without 'grammar' or 'json_schema'"));
}

TEST(ParameterRules, ADryBaseBelowOneIsTheDefault) {
    Settings base;
    base.request.sampling.dry_base = 1.5f;
    const ReadRules read(R"({"dry_base": 0.5})", base);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.dry_base, 1.5f);
    EXPECT_EQ(read.warned(), "'dry_base' is 0.5; 1.5 is used, as it must be at least 1");
    EXPECT_THAT(ReadRules(R"({"dry_base": 1})").warnings, IsEmpty());
}

TEST(ParameterRules, NoteWhatHasNoEffect) {
    EXPECT_THAT(ReadRules(R"({"temp": 0.2, "dynatemp_range": 0.3})").warned(),
                HasSubstr("its lower end is 0"));
    EXPECT_THAT(ReadRules(R"({"temp": 0.3, "dynatemp_range": 0.3})").warnings, IsEmpty());
    EXPECT_THAT(ReadRules(R"({"xtc_probability": 0.2, "xtc_threshold": 0.6})").warned(),
                HasSubstr("above 0.5"));
    EXPECT_THAT(ReadRules(R"({"xtc_threshold": 0.6})").warnings, IsEmpty());
    EXPECT_EQ(ReadRules(R"({"mirostat": 2, "top_k": 5, "top_p": 0.9})").warnings.size(), 2u);
    EXPECT_THAT(ReadRules(R"({"mirostat": 0, "top_k": 5})").warnings, IsEmpty());
    EXPECT_THAT(ReadRules(R"({"mirostat": 2, "samplers": "k"})").warned(),
                HasSubstr("while 'mirostat' is 2"));
    EXPECT_THAT(ReadRules(R"({"post_sampling_probs": true})").warned(), HasSubstr("without 'n_probs'"));
    EXPECT_THAT(ReadRules(R"({"enable_prompt_cache": false, "retention_ms": 5})").warned(),
                HasSubstr("no effect"));
    EXPECT_THAT(ReadRules(R"({"n_keep": 5})").warned(),
                HasSubstr("no effect unless 'context_shift' is true"));
    EXPECT_EQ(ReadRules(R"({"n_keep": 5, "context_shift": true})").warned(), "");
}

TEST(ParameterRules, StreamsByThemselvesAreTheDefaultNumber) {
    for (const char* number : {"-1", "0", "\"auto\""}) {
        const ReadRules read(fmt::format(R"({{"n_parallel": {}}})", number));
        EXPECT_EQ(read.settings.context.n_parallel, ContextSettings().n_parallel) << number << read.error;
    }
}

TEST(ParameterRules, AreNotNotedAgainByLaterLevels) {
    const ReadRules model(R"({"temp": 0.2, "dynatemp_range": 0.3})");
    EXPECT_THAT(ReadRules(R"({"top_k": 3})", model.settings).warnings, IsEmpty());
}

TEST(ParameterRules, QuantizedValuesNeedFlashAttention) {
    const ReadRules read(R"({"type_v": "q8_0"})");
    EXPECT_EQ(read.settings.context.flash_attn, "on");
    EXPECT_EQ(read.warned(), "'flash_attn' is on, as 'type_v' is q8_0");
    EXPECT_EQ(
        ReadRules(R"({"type_v": "q4_0", "flash_attn": "off"})").error,
        "'type_v' is q4_0, which needs flash attention; set 'flash_attn' to on or auto, or 'type_v' to f16");
    EXPECT_THAT(ReadRules(R"({"split_mode": "tensor", "flash_attn": false})").error,
                HasSubstr("'split_mode' to layer"));
    for (const char* json :
         {R"({"type_v": "bf16"})", R"({"type_v": "f32"})", R"({"type_k": "q8_0", "flash_attn": "off"})"})
        EXPECT_THAT(ReadRules(json).warned(), IsEmpty()) << json;
}

TEST(ParameterRules, BatchesFitIntoEachOther) {
    const ReadRules small(R"({"n_batch": 64})");
    EXPECT_EQ(small.settings.context.n_ubatch, 64);
    EXPECT_EQ(small.warned(), "'n_ubatch' is 64 in place of 512, as 'n_batch'");
    const ReadRules embeddings(R"({"embeddings": true, "n_ubatch": 256})");
    EXPECT_EQ(embeddings.settings.context.n_batch, 256);
    const ReadRules streams(R"({"n_parallel": 16, "max_sequences": 4})");
    EXPECT_EQ(streams.settings.context.n_parallel, 4);
}

struct Adjusted {
    Settings settings;
    Warnings warnings;
    Status status;

    Adjusted(const Settings& given, int n_ctx, int n_vocab)
        : settings(given), status(adjust(settings, n_ctx, n_vocab, warnings)) {}
};

Settings fitting() {
    Settings settings;
    settings.context.n_batch = settings.context.n_ubatch = 32;
    return settings;
}

TEST(ParameterAdjustments, LeaveWhatFits) {
    const Adjusted adjusted(fitting(), 512, 100);
    EXPECT_TRUE(adjusted.status.ok());
    EXPECT_THAT(adjusted.warnings, IsEmpty());
}

TEST(ParameterAdjustments, PenaltiesOfMinusOneLookAtTheWholeContext) {
    Settings settings = fitting();
    settings.request.sampling.penalty_last_n = -1;
    settings.request.sampling.dry_penalty_last_n = 1000000000;
    const Adjusted adjusted(settings, 512, 100);
    EXPECT_EQ(adjusted.settings.request.sampling.penalty_last_n, 512);
    EXPECT_EQ(adjusted.settings.request.sampling.dry_penalty_last_n, 512);
    ASSERT_EQ(adjusted.warnings.size(), 2u);
    EXPECT_EQ(adjusted.warnings[0].message, "'penalty_last_n' is 512 in place of -1: the context's size");
}

TEST(ParameterAdjustments, BatchesFitIntoTheContext) {
    const Adjusted adjusted(Settings{}, 256, 100);
    EXPECT_EQ(adjusted.settings.context.n_batch, 256);
    EXPECT_EQ(adjusted.settings.context.n_ubatch, 256);
    EXPECT_EQ(adjusted.warnings.size(), 2u);
}

TEST(ParameterAdjustments, AContextShiftLeavesRoom) {
    Settings settings = fitting();
    settings.request.n_keep = 64;
    settings.request.n_discard = 100;
    const Adjusted adjusted(settings, 64, 100);
    EXPECT_EQ(adjusted.settings.request.n_keep, 60);
    EXPECT_EQ(adjusted.settings.request.n_discard, 3);
    settings.request.n_keep = -1;
    settings.request.n_discard = 63;
    const Adjusted whole(settings, 64, 100);
    EXPECT_EQ(whole.settings.request.n_keep, -1);
    EXPECT_EQ(whole.settings.request.n_discard, 63);
    settings.request.n_keep = 5;
    EXPECT_EQ(Adjusted(settings, 1, 100).settings.request.n_keep, 0);
}

TEST(ParameterAdjustments, CountsFitIntoTheVocabulary) {
    Settings settings = fitting();
    settings.request.sampling.min_keep = 101;
    settings.request.sampling.n_probs = 2000;
    const Adjusted adjusted(settings, 512, 100);
    EXPECT_EQ(adjusted.settings.request.sampling.min_keep, 100);
    EXPECT_EQ(adjusted.settings.request.sampling.n_probs, 100);
}

TEST(ParameterAdjustments, TokensAreInTheVocabulary) {
    Settings settings = fitting();
    settings.request.sampling.logit_bias = {{99, 1}, {100, 1}, {5000, 1}};
    const Adjusted adjusted(settings, 512, 100);
    EXPECT_EQ(adjusted.settings.request.sampling.logit_bias.size(), 1u);
    EXPECT_THAT(adjusted.warnings.at(0).message,
                HasSubstr("names 2 tokens that the vocabulary of 100 does not have"));
    settings.request.sampling.grammar_triggers = {{GrammarTrigger::Type::token, "", 100}};
    const Adjusted refused(settings, 512, 100);
    ASSERT_FALSE(refused.status.ok());
    EXPECT_THAT(refused.status.error().message,
                HasSubstr("names the token 100; the model's vocabulary has 100"));
}

TEST(ParameterAdjustments, RefuseImpossibleModels) {
    EXPECT_FALSE(Adjusted(Settings{}, 0, 100).status.ok());
    EXPECT_FALSE(Adjusted(Settings{}, 100, 0).status.ok());
}

TEST(ParameterRules, BatchInvarianceNeedsAttentionOverHalfFloats) {
    EXPECT_THAT(ReadRules(R"({"batch_invariant": true, "type_k": "q8_0"})").error,
                HasSubstr("'batch_invariant' needs caches of f16, and 'type_k' is q8_0"));
    EXPECT_THAT(ReadRules(R"({"batch_invariant": true, "flash_attn": "off"})").error,
                HasSubstr("needs flash attention; set 'flash_attn' to auto or on"));
    EXPECT_THAT(ReadRules(R"({"batch_invariant": true, "embeddings": true})").error,
                HasSubstr("not for vectors"));
    const ReadRules right(R"({"batch_invariant": true, "flash_attn": "on"})");
    EXPECT_EQ(right.error, "");
    EXPECT_TRUE(right.settings.context.batch_invariant);
    Settings lenient;
    lenient.lenient = true;
    const ReadRules changed(R"({"batch_invariant": true, "type_k": "q4_0"})", lenient);
    EXPECT_FALSE(changed.settings.context.batch_invariant);
    EXPECT_THAT(changed.warned(), HasSubstr("it is off"));
}

}  // namespace
}  // namespace headrace::llm
