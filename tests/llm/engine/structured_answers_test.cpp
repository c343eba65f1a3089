#include <common/sampling.h>
#include <gmock/gmock.h>

#include <random>

#include "llm/engine/sampler.h"
#include "llm/engine_parts.h"
#include "llm/structured_schemas.h"

namespace headrace::llm {
namespace {

/// Logits that want any token, and nearly never one that a schema lets come next.
class StructuredAnswers : public EngineParts {
protected:
    StructuredAnswers() : EngineParts(1) {
        llama_token token = 100;
        if (llama_decode(context->get(), llama_batch_get_one(&token, 1)) != 0)
            throw std::runtime_error("the model computes nothing");
    }

    void draw_logits(unsigned seed) {
        std::mt19937 random(seed);
        std::normal_distribution<float> normal(0, 4);
        float* logits = llama_get_logits_ith(context->get(), 0);
        for (int token = 0; token < model->vocabulary_size(); ++token) logits[token] = normal(random);
    }

    Tokens ours(const RequestSettings& request, int count) {
        Result<Sampler> sampler = Sampler::create(*model, request, {});
        EXPECT_TRUE(sampler.ok());
        Tokens tokens;
        for (int i = 0; i < count && (tokens.empty() || !model->ends_answer(tokens.back())); ++i) {
            draw_logits(static_cast<unsigned>(i));
            const auto chosen = sampler.value().sample(context->get(), {0}, {});
            EXPECT_TRUE(chosen.ok()) << chosen.error().message;
            if (!chosen.ok()) break;
            tokens.push_back(chosen.value().front().token);
        }
        return tokens;
    }

    /// By llama.cpp's sampler with its own grammar.
    Tokens theirs(const RequestSettings& request, int count) {
        Result<common_params_sampling> params = sampling_params(*model, request);
        EXPECT_TRUE(params.ok());
        const common_sampler_ptr sampler(common_sampler_init(model->get(), params.value()));
        Tokens tokens;
        for (int i = 0; i < count && (tokens.empty() || !model->ends_answer(tokens.back())); ++i) {
            draw_logits(static_cast<unsigned>(i));
            tokens.push_back(common_sampler_sample(sampler.get(), context->get(), 0));
            common_sampler_accept(sampler.get(), tokens.back(), true);
        }
        return tokens;
    }

    void compare(const RequestSettings& request) {
        const Tokens expected = theirs(request, 48);
        EXPECT_EQ(ours(request, 48), expected);
        EXPECT_GE(expected.size(), 3u);
    }
};

TEST_F(StructuredAnswers, AreThoseOfLlamaCppForThirtySchemas) {
    const auto schemas = structured_schemas();
    EXPECT_EQ(schemas.size(), 30u);
    for (const auto& [name, schema] : schemas)
        for (const float temperature : {0.0f, 0.8f, 2.0f}) {
            SCOPED_TRACE(name + " at " + std::to_string(temperature));
            RequestSettings request = settings.request;
            request.json_schema = schema;
            request.sampling.temp = temperature;
            request.sampling.seed = 5;
            compare(request);
        }
}

TEST_F(StructuredAnswers, AreThoseOfLlamaCppWithPenaltiesAndBiases) {
    RequestSettings request = settings.request;
    request.json_schema = structured_schemas().at("array_of_objects");
    request.sampling.penalty_repeat = 1.3f;
    request.sampling.top_k = 0;
    request.sampling.temp = 1.5f;
    request.sampling.seed = 9;
    request.sampling.logit_bias = {{200, 5.0f}, {300, -INFINITY}};
    compare(request);
}

TEST_F(StructuredAnswers, OfCallsBeginBehindWhatTheTemplateHasWritten) {
    RequestSettings request = settings.request;
    request.demands.grammar = "root ::= \"call \" [a-z]{3} \";\"";
    request.demands.generation_prompt = "call ";
    compare(request);
    request.demands.generation_prompt = "cull ";
    const auto refused = Sampler::create(*model, request, {});
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message, testing::HasSubstr("the grammar of calls cannot begin"));
    request.demands.generation_prompt = "call ";
    EXPECT_TRUE(Sampler::create(*model, request, {}).ok()) << "the grammar itself is right";
}

TEST_F(StructuredAnswers, FailWhereTheVocabularyHasNoTokenThatMayComeNext) {
    RequestSettings request = settings.request;
    request.grammar = "root ::= \"a\"";
    for (llama_token token = 0; token < model->vocabulary_size(); ++token)
        if (model->piece(token) == "a") request.sampling.logit_bias.push_back({token, -INFINITY});
    Result<Sampler> sampler = Sampler::create(*model, request, {});
    ASSERT_TRUE(sampler.ok()) << sampler.error().message;
    draw_logits(1);
    const auto chosen = sampler.value().sample(context->get(), {0}, {});
    ASSERT_FALSE(chosen.ok());
    EXPECT_THAT(chosen.error().message, testing::HasSubstr("no token"));
}

}  // namespace
}  // namespace headrace::llm
