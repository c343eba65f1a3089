#include "llm/engine/embedder.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "llm/small_ranker.h"
#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

const std::string kTexts[] = {"What is 2+3?", "Tell me a story."};

std::vector<TextVectors> embed_all(const std::string& pooling, int normalize) {
    Settings settings = tiny_settings();
    settings.context.embeddings = true;
    settings.context.pooling = pooling;
    const Result<Runner> runner = pooling == "rank"
                                      ? open_runner(MemoryFile::of(small_ranker()).value(), settings)
                                      : open_runner(tiny_model(), settings);
    if (!runner.ok()) throw std::runtime_error(runner.error().message);
    settings.request.embd_normalize = normalize;
    const auto vectors =
        runner.value().embedder->embed({std::begin(kTexts), std::end(kTexts)}, settings.request);
    if (!vectors.ok()) throw std::runtime_error(vectors.error().message);
    return vectors.value();
}

/// The one vector of each text.
TextVectors embed(const std::string& pooling, int normalize) {
    TextVectors vectors;
    for (const TextVectors& text : embed_all(pooling, normalize)) {
        EXPECT_EQ(text.size(), 1u);
        vectors.push_back(text.front());
    }
    return vectors;
}

TEST(Embedder, NormalizesVectors) {
    for (const auto& vector : embed("mean", 2)) {
        double square = 0;
        for (const float value : vector) square += double(value) * value;
        EXPECT_NEAR(square, 1, 1e-5);
    }
}

TEST(Embedder, LeavesTheScoresOfARankerAsTheyAre) {
    const auto scores = embed("rank", 2);
    EXPECT_EQ(scores, embed("rank", -1));
    for (const auto& score : scores) {
        ASSERT_EQ(score.size(), 1u);
        EXPECT_NE(std::abs(score[0]), 1.0f);
    }
    EXPECT_NE(scores[0], scores[1]);
}

std::shared_ptr<Embedder> started(Settings settings = tiny_settings()) {
    settings.context.embeddings = true;
    settings.context.pooling = "mean";
    const Result<Runner> runner = open_runner(tiny_model(), settings);
    if (!runner.ok()) throw std::runtime_error(runner.error().message);
    return runner.value().embedder;
}

/// So many texts that they take seconds, in hundreds of steps.
EmbeddingRequest large_request() {
    return {.texts = std::vector<std::string>(20000, kTexts[0]), .owner = "large"};
}

std::shared_ptr<Embedding> submit(Embedder& embedder, EmbeddingRequest request) {
    auto embedding = embedder.submit(std::move(request));
    if (!embedding.ok()) throw std::runtime_error(embedding.error().message);
    return embedding.value();
}

void wait_until_one_runs(const Embedder& embedder) {
    while (embedder.statistics().running == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Embedder, EndsARequestWhoseTimeIsOverWhileItWaitsAndWhileItRuns) {
    const auto embedder = started();
    const auto large = submit(*embedder, large_request());
    wait_until_one_runs(*embedder);
    EmbeddingRequest late{.texts = {kTexts[0]}, .owner = "late"};
    late.settings.priority = Priority::low;
    late.settings.queue_timeout_ms = 30;
    const auto not_begun = submit(*embedder, late)->wait();
    ASSERT_FALSE(not_begun.ok());
    EXPECT_EQ(not_begun.error().code, Code::timed_out);
    EXPECT_EQ(not_begun.error().message, "not begun within queue_timeout_ms 30");
    large->cancel();
    EmbeddingRequest slow = large_request();
    slow.settings.timeout_ms = 100;
    const auto not_done = submit(*embedder, slow)->wait();
    ASSERT_FALSE(not_done.ok());
    EXPECT_EQ(not_done.error().message, "not done within timeout_ms 100");
}

TEST(Embedder, EndsACancelledRequestAtOnceAndGoesOnWithOthersInThreads) {
    const auto embedder = started();
    const auto large = submit(*embedder, large_request());
    wait_until_one_runs(*embedder);
    std::thread other([&] { large->cancel(); });
    const auto vectors = large->wait();
    other.join();
    ASSERT_FALSE(vectors.ok());
    EXPECT_EQ(vectors.error().code, Code::cancelled);
    const auto next = embedder->embed({kTexts[0]}, tiny_settings().request);
    ASSERT_TRUE(next.ok()) << next.error().message;
    EXPECT_THAT(next.value()[0][0], testing::Pointwise(testing::FloatNear(1e-4f), embed("mean", 2)[0]));
}

TEST(Embedder, BreaksOffTheStepOfARequestThatIsCancelled) {
    const auto embedder = started();
    for (int i = 0; i < 50 && embedder->statistics().broken_off == 0; ++i) {
        const auto large = submit(*embedder, large_request());
        wait_until_one_runs(*embedder);
        large->cancel();
        EXPECT_TRUE(embedder->embed({kTexts[0]}, tiny_settings().request).ok());
    }
    EXPECT_GT(embedder->statistics().broken_off, 0u);
}

TEST(Embedder, TakesNoStepForARequestThatNobodyWants) {
    const auto embedder = started();
    EmbeddingRequest request = large_request();
    request.settings.timeout_ms = 0;  // over before it begins
    EXPECT_FALSE(submit(*embedder, request)->wait().ok());
    EXPECT_TRUE(embedder->embed({kTexts[0]}, tiny_settings().request).ok());
    EXPECT_EQ(embedder->statistics().steps, 1u);
}

TEST(Embedder, LetsARequestOfAHigherPriorityAndOneOfAnotherOwnerGoFirst) {
    const auto embedder = started();
    const auto large = submit(*embedder, large_request());
    wait_until_one_runs(*embedder);
    for (const Priority priority : {Priority::high, Priority::normal}) {
        EmbeddingRequest small{.texts = {kTexts[1]}, .owner = "small"};
        small.settings.priority = priority;
        ASSERT_TRUE(submit(*embedder, small)->wait().ok());
        EXPECT_EQ(embedder->statistics().running, 1u) << "the large one is not done";
    }
    large->cancel();
}

TEST(Embedder, IsBusyWhenTooManyRequestsWait) {
    Settings settings = tiny_settings();
    settings.queue.max_waiting = 1;
    const auto embedder = started(settings);
    const auto large = submit(*embedder, large_request());
    wait_until_one_runs(*embedder);
    const auto waiting = submit(*embedder, {.texts = {kTexts[0]}, .owner = "large"});
    const auto rejected = embedder->submit({.texts = {kTexts[1]}, .owner = "large"});
    ASSERT_FALSE(rejected.ok());
    EXPECT_EQ(rejected.error().code, Code::busy);
    EXPECT_EQ(rejected.error().message,
              "1 requests are waiting already, and queue.max_waiting is 1. Try again later");
    large->cancel();
    EXPECT_TRUE(waiting->wait().ok());
    EXPECT_EQ(embedder->statistics().rejected, 1u);
}

}  // namespace
}  // namespace headrace::llm
