// Answers of an engine with batch_invariant: the same tokens and probabilities whatever runs beside them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "llm/random_model.h"
#include "llm/tiny_model.h"
#include "temporary_folder.h"

namespace headrace::llm {
namespace {

struct Answer {
    Tokens tokens;
    std::vector<double> probabilities;
    int cached_tokens, shifts, accepted;

    bool operator==(const Answer& other) const {
        return tokens == other.tokens && probabilities == other.probabilities;
    }
};

Tokens random_prompt(unsigned seed, std::size_t size) {
    std::mt19937 random(seed);
    Tokens tokens(size);
    for (llama_token& token : tokens) token = static_cast<llama_token>(3 + random() % 300);
    return tokens;
}

class InvariantEngine : public testing::TestWithParam<std::tuple<const char*, ggml_type>> {
protected:
    void SetUp() override {
        if (const Status can = require_packed_kernels(); !can.ok()) GTEST_SKIP() << can.error().message;
        file_ = std::make_unique<RandomModel>(std::get<0>(GetParam()), std::get<1>(GetParam()));
        settings_.context.n_ctx = 1024;
        settings_.context.batch_invariant = true;
    }
    /// Greedy, or by chance with a seed of its own.
    RequestSettings request(bool is_greedy, int n_predict = 24) const {
        RequestSettings made = endless_request(settings_.request, n_predict);
        made.sampling.n_probs = 2;
        if (is_greedy) return made;
        made.sampling.temp = 1.3f;
        made.sampling.seed = 42;
        return made;
    }
    std::shared_ptr<Engine> engine(const Settings& settings) const {
        Result<Runner> runner = open_runner(file_->path(), settings);
        if (!runner.ok()) throw std::runtime_error(runner.error().message);
        return runner.value().engine;
    }
    static Answer answer(Engine& engine, const Tokens& prompt, const RequestSettings& request) {
        return taken(*ask(engine, {.prompt = prompt, .settings = request, .owner = "watched"}));
    }
    static Answer taken(Generation& generation) {
        const Outcome& outcome = generation.wait();
        EXPECT_FALSE(outcome.failed()) << outcome.detail;
        return {outcome.tokens,
                {outcome.token_probabilities.begin(), outcome.token_probabilities.end()},
                outcome.cached_tokens,
                outcome.shifts,
                outcome.accepted};
    }
    /// What an engine that has seen nothing else says.
    Answer alone(const RequestSettings& request) const {
        return answer(*engine(settings_), prompt_, request);
    }

    const Tokens prompt_ = random_prompt(1, 120);
    Settings settings_ = tiny_settings();
    std::unique_ptr<RandomModel> file_;
};

/// Seven other streams, each of which begins, reads, writes and ends while the engine answers.
class Crowd {
public:
    Crowd(Engine& engine, const RequestSettings& settings, unsigned seed) {
        for (unsigned i = 0; i < 7; ++i)
            threads_.emplace_back([&engine, settings, seed, i, this] {
                std::mt19937 random(seed * 7 + i);
                while (!is_over_) {
                    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
                    RequestSettings own = settings;
                    own.n_predict = static_cast<int>(1 + random() % 40);
                    const auto generation =
                        ask(engine, {.prompt = random_prompt(seed * 7 + i, 1 + random() % 90),
                                     .settings = own,
                                     .owner = std::to_string(i)});
                    if (random() % 5 == 0) generation->cancel();
                    generation->wait();
                }
            });
    }
    ~Crowd() {
        is_over_ = true;
        for (std::thread& thread : threads_) thread.join();
    }

private:
    std::atomic<bool> is_over_ = false;
    std::vector<std::thread> threads_;
};

TEST_P(InvariantEngine, AnswersTheSameBesideSevenOthersThatComeAndGo) {
    for (const bool is_greedy : {true, false}) {
        const Answer expected = alone(request(is_greedy));
        const auto shared = engine(settings_);
        for (unsigned seed = 1; seed <= 3; ++seed) {
            const Crowd crowd(*shared, request(false), seed);
            RequestSettings anew = request(is_greedy);
            anew.cache_prompt = seed % 2 == 0;
            for (int i = 0; i < 3; ++i)
                EXPECT_TRUE(answer(*shared, prompt_, anew) == expected)
                    << "seed " << seed << ", greedy " << is_greedy;
        }
        EXPECT_GT(shared->statistics().stream_steps, 2 * shared->statistics().steps) << "nobody was there";
    }
}

TEST_P(InvariantEngine, AnswersTheSameInStepsOfOtherSizes) {
    const Answer expected = alone(request(false));
    for (const int size : {32, 64, 512}) {
        Settings other = settings_;
        other.context.n_batch = other.context.n_ubatch = size;
        EXPECT_TRUE(answer(*engine(other), prompt_, request(false)) == expected) << size;
    }
}

TEST_P(InvariantEngine, AnswersTheSameBehindABeginningThatOthersHaveRead) {
    const Answer expected = alone(request(false));
    const auto shared = engine(settings_);
    Tokens related(prompt_.begin(), prompt_.begin() + 70);
    related.push_back(9);
    answer(*shared, related, request(true));
    const Answer second = answer(*shared, prompt_, request(false));
    EXPECT_GE(second.cached_tokens, 70);
    EXPECT_TRUE(second == expected);
    const Answer third = answer(*shared, prompt_, request(false));
    EXPECT_EQ(third.cached_tokens, 119);
    EXPECT_TRUE(third == expected);
}

TEST_P(InvariantEngine, AnswersTheSameFromAPromptInAFile) {
    const Answer expected = alone(request(false));
    const TemporaryFolder folder;
    const std::string invariant = folder / "invariant", usual = folder / "usual";
    {
        const auto first = engine(settings_);
        answer(*first, random_prompt(8, 40), request(true));
        answer(*first, prompt_, request(true));
        ASSERT_TRUE(first->save_prompt(prompt_, invariant).ok());
    }
    Settings without = settings_;
    without.context.batch_invariant = false;
    {
        const auto first = engine(without);
        answer(*first, prompt_, request(true));
        ASSERT_TRUE(first->save_prompt(prompt_, usual).ok());
    }
    Settings elsewhere = settings_;
    elsewhere.context.n_ctx = 768;
    const auto second = engine(elsewhere);
    answer(*second, random_prompt(9, 30), request(true));
    EXPECT_FALSE(second->restore_prompt(usual).ok()) << "computed in another way";
    ASSERT_TRUE(second->restore_prompt(invariant).ok());
    const Answer restored = answer(*second, prompt_, request(false));
    EXPECT_EQ(restored.cached_tokens, 119);
    EXPECT_TRUE(restored == expected);
}

TEST_P(InvariantEngine, AnswersTheSameWithDrafts) {
    RequestSettings plain = request(true, 200);
    RequestSettings drafting = plain;
    drafting.speculation.enabled = true;
    drafting.speculation.ngram_size = 1;
    drafting.speculation.min_acceptance = 0;
    const Answer drafted = answer(*engine(settings_), prompt_, drafting);
    EXPECT_TRUE(drafted == alone(plain));
}

TEST_P(InvariantEngine, ShiftsAFullContextTheSameWithAndWithoutASharedBeginning) {
    settings_.context.n_ctx = 256;
    settings_.context.context_shift = true;
    const RequestSettings longer = request(true, 400);
    const Answer expected = alone(longer);
    EXPECT_GT(expected.shifts, 0);
    const auto shared = engine(settings_);
    answer(*shared, prompt_, request(true, 5));
    EXPECT_TRUE(answer(*shared, prompt_, longer) == expected);
}

INSTANTIATE_TEST_SUITE_P(Models, InvariantEngine,
                         testing::Combine(testing::Values("llama", "qwen3"),
                                          testing::Values(GGML_TYPE_Q8_0, GGML_TYPE_Q4_0, GGML_TYPE_F16)),
                         [](const auto& of) {
                             return std::string(std::get<0>(of.param)) + "_" +
                                    ggml_type_name(std::get<1>(of.param));
                         });

TEST(BatchInvariance, IsRefusedForModelsOfVectors) {
    if (const Status can = require_packed_kernels(); !can.ok()) GTEST_SKIP() << can.error().message;
    Settings settings = tiny_settings();
    settings.context.batch_invariant = settings.context.embeddings = true;
    const auto opened = open_runner(tiny_model(), settings);
    ASSERT_FALSE(opened.ok());
    EXPECT_THAT(opened.error().message, testing::HasSubstr("for models that write"));
}

}  // namespace
}  // namespace headrace::llm
