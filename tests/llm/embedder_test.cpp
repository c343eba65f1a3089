#include "llm/embedder.h"

#include <gmock/gmock.h>

#include <cmath>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

const std::string texts[] = {"What is 2+3?", "Tell me a story."};

std::vector<TextVectors> embed_all(const std::string& pooling, int normalize) {
    Settings settings = tiny_settings();
    settings.context.embeddings = true;
    settings.context.pooling = pooling;
    const Result<Runner> runner = open_runner(tiny_model(), settings);
    if (!runner.ok()) throw std::runtime_error(runner.error().message);
    const auto vectors = runner.value().embedder->embed(texts, normalize);
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

}  // namespace
}  // namespace headrace::llm
