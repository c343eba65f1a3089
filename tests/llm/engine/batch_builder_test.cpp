#include "llm/engine/batch_builder.h"

#include <gmock/gmock.h>

#include "llm/engine_parts.h"

namespace headrace::llm {
namespace {

using testing::IsEmpty;

class BatchBuilderTest : public EngineParts {
protected:
    BatchBuilderTest() : EngineParts(3) {
        settings.context.n_ubatch = 32;
        batch.emplace(*model, *context, *sequences, nullptr, nullptr, settings,
                      static_cast<int>(llama_n_ctx_seq(context->get())), counters);
    }
    /// A stream with a sequence of its own.
    std::unique_ptr<Stream> placed(std::size_t size, llama_token token) {
        auto made = stream({.prompt = prompt(size, token), .settings = endless_request(settings.request)});
        made->sequence = sequences->acquire(made->tokens, false).value().id;
        return made;
    }

    std::optional<BatchBuilder> batch;
};

TEST_F(BatchBuilderTest, GivesLongPromptsWhatShortOnesLeaveOfAStep) {
    const auto longer = placed(100, 300), shorter = placed(10, 400);
    ASSERT_TRUE(batch->build({longer.get(), shorter.get()}, false));
    ASSERT_EQ(batch->parts().size(), 2u);
    EXPECT_EQ(batch->parts()[0].stream, shorter.get());
    EXPECT_EQ(batch->parts()[0].count, 10);
    EXPECT_TRUE(batch->parts()[0].has_output);
    EXPECT_EQ(batch->parts()[1].first, 10);
    EXPECT_EQ(batch->parts()[1].count, 22) << "of the 32 that a step takes";
    EXPECT_FALSE(batch->parts()[1].has_output) << "more of the prompt is to come";
    EXPECT_TRUE(batch->only_reads());
    EXPECT_TRUE(batch->can_be_broken_off());
}

TEST_F(BatchBuilderTest, ReadsTheShortestPromptFirstAndAlwaysSomeOfTheOldest) {
    const auto oldest = placed(100, 300), middle = placed(40, 350), shortest = placed(10, 400);
    ASSERT_TRUE(batch->build({oldest.get(), middle.get(), shortest.get()}, false));
    const auto is_part = [](const std::unique_ptr<Stream>& stream, int count) {
        return testing::AllOf(testing::Field(&BatchPart::stream, stream.get()),
                              testing::Field(&BatchPart::count, count));
    };
    EXPECT_THAT(batch->parts(),
                testing::ElementsAre(is_part(shortest, 10), is_part(middle, 12), is_part(oldest, 10)));
}

TEST_F(BatchBuilderTest, ReadsWhatTwoPromptsShareOnce) {
    const auto first = placed(20, 300), second = placed(20, 300);
    ASSERT_TRUE(batch->build({first.get(), second.get()}, false));
    ASSERT_EQ(batch->parts().size(), 1u);
    ASSERT_EQ(batch->run(), 0);
    batch->read_back();
    ASSERT_TRUE(batch->build({second.get()}, false));
    EXPECT_EQ(second->outcome.cached_tokens, 19);
    EXPECT_EQ(batch->parts()[0].count, 1) << "the last token, for what follows it";
}

TEST_F(BatchBuilderTest, ReadsBackATokenOfEachStreamThatDecodes) {
    const auto stream = placed(10, 300);
    ASSERT_TRUE(batch->build({stream.get()}, false));
    ASSERT_EQ(batch->run(), 0);
    batch->read_back();
    EXPECT_EQ(stream->decoded, 10u);
    EXPECT_EQ(stream->outcome.tokens.size(), 1u);
    ASSERT_TRUE(stream->is_decoding());
    ASSERT_TRUE(batch->build({stream.get()}, false));
    EXPECT_FALSE(batch->only_reads());
    EXPECT_EQ(batch->parts()[0].count, 1 + static_cast<int>(batch->parts()[0].draft.size()));
    EXPECT_EQ(counters.steps, 1u);
    EXPECT_EQ(counters.prompt_tokens, 10u);
    EXPECT_EQ(counters.generated_tokens, 1u);
}

TEST_F(BatchBuilderTest, TakesBackAStepThatWasBrokenOff) {
    const auto stream = placed(10, 300);
    ASSERT_TRUE(batch->build({stream.get()}, false));
    EXPECT_EQ(stream->outcome.read_tokens, 10);
    batch->take_back();
    EXPECT_EQ(stream->outcome.read_tokens, 0);
    EXPECT_EQ(stream->decoded, 0u);
    EXPECT_THAT(stream->outcome.tokens, IsEmpty());
}

TEST_F(BatchBuilderTest, SaysThatTheContextHasNoRoomForATokenMore) {
    const auto holder = placed(10, 300), newcomer = placed(10, 400);
    fill(*holder->sequence, sequences->room());
    EXPECT_FALSE(batch->build({newcomer.get()}, false));
    EXPECT_THAT(batch->parts(), IsEmpty());
}

TEST_F(BatchBuilderTest, ForgetsRememberedPromptsForTheTokensOfAStep) {
    const auto ended = placed(10, 300), newcomer = placed(10, 400);
    fill(*ended->sequence, sequences->room());
    sequences->release(*ended->sequence, true);
    ASSERT_TRUE(batch->build({newcomer.get()}, false));
    EXPECT_EQ(batch->parts()[0].count, 10);
    EXPECT_EQ(sequences->idle_count(), 0u);
    EXPECT_EQ(counters.evictions, 1u);
}

}  // namespace
}  // namespace headrace::llm
