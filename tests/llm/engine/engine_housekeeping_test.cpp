// What an engine gives back by itself, also while it never rests.
#include <gmock/gmock.h>

#include <thread>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;

/// Remembered sequences while a stream generates on and on, once `enough` is true of them or time is over.
template <class Enough>
std::size_t remembered_beside_an_endless_stream(const Settings& settings, Enough enough) {
    const auto engine = tiny_engine(settings);
    RequestSettings endless = endless_request(settings.request);
    endless.cache_prompt = false;
    const auto running = ask(*engine, question(*engine, "Tell me a story.", endless));
    ask(*engine, question(*engine, "What is 2+3?"))->wait();
    const auto until = Clock::now() + 5s;
    std::size_t remembered = engine->statistics().remembered_sequences;
    while (!enough(remembered) && Clock::now() < until) {
        std::this_thread::sleep_for(10ms);
        remembered = engine->statistics().remembered_sequences;
    }
    EXPECT_FALSE(running->done()) << "the engine rested";
    running->cancel();
    running->wait();
    return remembered;
}

/// A context that the stream does not fill meanwhile: what it needs pushes out remembered prompts, too.
Settings roomy_settings() {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 1 << 15;
    return settings;
}

TEST(EngineHousekeeping, ForgetsPromptsAfterTheirTimeWhileOthersRun) {
    Settings settings = roomy_settings();
    settings.cache.retention_ms = 50;
    EXPECT_EQ(remembered_beside_an_endless_stream(settings, [](std::size_t n) { return n == 0; }), 0u);
}

TEST(EngineHousekeeping, GivesMemoryBackUnderPressureWhileOthersRun) {
    Settings settings = roomy_settings();
    settings.cache.retention_ms = 0;
    settings.cache.pressure_threshold = 1e-6;  // every machine uses that much
    EXPECT_EQ(remembered_beside_an_endless_stream(settings, [](std::size_t n) { return n == 0; }), 0u);
}

TEST(EngineHousekeeping, KeepsPromptsThatNothingAsksFor) {
    Settings settings = roomy_settings();
    settings.cache.retention_ms = 0;
    settings.cache.pressure_threshold = 1;
    EXPECT_EQ(remembered_beside_an_endless_stream(settings, [](std::size_t n) { return n > 0; }), 1u);
}

}  // namespace
}  // namespace headrace::llm
