// What goes into an engine's steps, and what a full context keeps.
#include <gtest/gtest.h>

#include <vector>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

TEST(Engine, AShiftKeepsTheStartThatIsToBeKept) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 256;
    settings.context.context_shift = true;
    std::vector<Tokens> answers;
    for (const int n_keep : {0, -1}) {
        const auto engine = tiny_engine(settings);  // anew: cells in another order round otherwise
        RequestSettings endless = endless_request(settings.request, 600);
        endless.n_keep = n_keep;
        const Outcome outcome = ask(*engine, question(*engine, "Tell me a story.", endless))->wait();
        EXPECT_GT(outcome.shifts, 1);
        answers.push_back(outcome.tokens);
    }
    EXPECT_NE(answers[0], answers[1]) << "the prompt was dropped, and was not";
}

TEST(Engine, ReadsALongPromptInPiecesBesideAStreamThatDecodes) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 4096;
    settings.queue.step_target_ms = 1;
    const auto engine = tiny_engine(settings);
    RequestSettings endless = endless_request(settings.request);
    const auto running = ask(*engine, question(*engine, "Tell me a story.", endless));
    ASSERT_TRUE(running->next().ok());
    GenerationRequest reading = question(*engine, "What is 2+3?");
    const Tokens turn = reading.prompt;
    while (reading.prompt.size() < 1500)
        reading.prompt.insert(reading.prompt.end(), turn.begin(), turn.end());
    const std::uint64_t before = engine->statistics().steps;
    ASSERT_TRUE(ask(*engine, std::move(reading))->next().ok());
    EXPECT_GT(engine->statistics().steps - before, 8u);
    running->cancel();
}

}  // namespace
}  // namespace headrace::llm
