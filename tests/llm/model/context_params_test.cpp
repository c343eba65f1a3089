#include "llm/model/context_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/machine_memory.h"
#include "llm/model/context_memory.h"
#include "llm/parameters/parameters.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

TEST(ContextParams, LetABatchHoldATokenOfEverySequence) {
    Settings settings = tiny_settings();
    settings.context.n_batch = settings.context.n_ubatch = 1;
    settings.context.max_sequences = 64;
    const auto engine = tiny_engine(settings);
    const auto params = context_params(engine->model(), settings.context);
    ASSERT_TRUE(params.ok());
    EXPECT_EQ(params.value().n_batch, 64u);
    EXPECT_EQ(params.value().n_ubatch, 1u);
    EXPECT_EQ(ask(*engine, question(*engine, "What is 2+3?"))->wait().text, "2+3=5");
}

TEST(ContextParams, TakeEveryExtremeThatTheTableAllows) {
    for (const auto& [n_ctx, n_batch, sequences] :
         {std::tuple{1, 1 << 20, 256}, {1, 1, 1}, {300, 1, 256}, {512, 7, 3}}) {
        Settings settings = tiny_settings();
        settings.context.n_ctx = n_ctx;
        settings.context.n_batch = settings.context.n_ubatch = n_batch;
        settings.context.max_sequences = sequences;
        settings.context.n_parallel = std::min(sequences, 8);
        const auto engine = tiny_engine(settings);
        EXPECT_EQ(ask(*engine, question(*engine, "What is 2+3?"))->wait().text, "2+3=5") << n_ctx;
    }
}

TEST(ContextParams, OfAllThatTheModelWasTrainedWithTakeNoMoreThanMemoryHas) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = kTrainedContext;
    const auto engine = tiny_engine(settings);
    EXPECT_EQ(engine->context_tokens(), llama_model_n_ctx_train(engine->model().get()));
    const auto made = context_params(engine->model(), settings.context);
    ASSERT_TRUE(made.ok());
    llama_context_params params = made.value();
    EXPECT_EQ(most_context_tokens(engine->model(), params), params.n_ctx);
    params.n_ctx = 1u << 30;
    const std::uint32_t most = most_context_tokens(engine->model(), params);
    EXPECT_GT(most, 0u);
    EXPECT_LT(most, 1u << 30);
    EXPECT_EQ(most % 256, 0u);
    params.n_ctx = most;
    EXPECT_LT(context_bytes(engine->model(), params), available_memory());
}

TEST(ContextParams, HaveAllThatTheModelWasTrainedWithOnlyWhereSomebodyAsksForIt) {
    const auto tokens = [](const char* parameters, std::uint32_t trained) {
        Warnings warnings;
        const auto settings = with_parameters({}, parameters, Level::model, warnings);
        return sized_context_params(settings.value().context, trained, true).value().n_ctx;
    };
    EXPECT_EQ(tokens("{}", 32768), 8192u);
    EXPECT_EQ(tokens("{}", 2048), 2048u);
    EXPECT_EQ(tokens(R"({"n_ctx": "auto"})", 32768), 8192u);
    EXPECT_EQ(tokens(R"({"n_ctx": 0})", 32768), 32768u);
    EXPECT_EQ(tokens(R"({"n_ctx": "model"})", 32768), 32768u);
    EXPECT_EQ(tokens(R"({"n_ctx": 512})", 32768), 512u);
}

TEST(ContextParams, GiveARequestItsPartWhereTheContextIsDivided) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 512;
    settings.context.n_parallel = 4;
    settings.context.n_ctx_per_request = -1;
    EXPECT_EQ(tiny_engine(settings)->context_size(), 128);
}

}  // namespace
}  // namespace headrace::llm
