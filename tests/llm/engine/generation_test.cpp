#include "llm/engine/generation.h"

#include <gtest/gtest.h>

#include <thread>

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;

TEST(Generation, GivesTheTextThatCameSinceTheLastPiece) {
    Generation generation(1, {});
    generation.push({.text = "one ", .tokens = 1});
    generation.push({.text = "two", .tokens = 2});
    const auto piece = generation.next();
    ASSERT_TRUE(piece.ok());
    EXPECT_EQ(piece.value().text, "one two");
    EXPECT_EQ(piece.value().tokens, 2);
    EXPECT_FALSE(piece.value().done);
}

TEST(Generation, SaysThatNothingCameInTime) {
    Generation generation(1, {});
    EXPECT_EQ(generation.next(1ms).error().code, Code::timed_out);
}

TEST(Generation, EndsWithWhatWasNotRead) {
    Generation generation(1, {});
    generation.push({.text = "rest", .tokens = 1});
    generation.finish({.reason = StopReason::end_of_answer, .text = "rest"});
    const auto piece = generation.next();
    EXPECT_EQ(piece.value().text, "rest");
    EXPECT_TRUE(piece.value().done);
    EXPECT_EQ(generation.next().value().text, "") << "the end can be asked for again";
    EXPECT_EQ(generation.wait().text, "rest");
}

TEST(GenerationThreads, WakeTheirReaderAndTheirEngine) {
    Generation generation(1, {});
    int wakes = 0;
    generation.set_wake([&] { ++wakes; });
    std::thread engine([&] { generation.push({.text = "a", .tokens = 1}); });
    EXPECT_EQ(generation.next().value().text, "a");
    engine.join();
    generation.cancel();
    EXPECT_TRUE(generation.is_cancelled());
    EXPECT_EQ(wakes, 1);
}

}  // namespace
}  // namespace headrace::llm
