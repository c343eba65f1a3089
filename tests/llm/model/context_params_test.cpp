#include "llm/model/context_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headrace::llm
