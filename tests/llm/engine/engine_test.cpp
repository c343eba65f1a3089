#include "llm/engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "llm/tiny_model.h"

namespace headrace::llm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string answer(Engine& engine, const std::string& text) {
    return ask(engine, question(engine, text))->wait().text;
}

/// What llama.cpp itself generates, greedily, one token a step.
Tokens reference(Engine& engine, const Tokens& prompt, int count) {
    llama_context_params params = llama_context_default_params();
    params.n_ctx = 512;
    params.n_threads = params.n_threads_batch = 1;
    llama_context* context = llama_init_from_model(engine.model().get(), params);
    Tokens tokens, input = prompt;
    while (std::cmp_less(tokens.size(), count)) {
        llama_decode(context, llama_batch_get_one(input.data(), static_cast<int>(input.size())));
        const float* logits = llama_get_logits_ith(context, -1);
        const auto best = static_cast<llama_token>(
            std::max_element(logits, logits + engine.model().vocabulary_size()) - logits);
        tokens.push_back(best);
        if (engine.model().ends_answer(best)) break;
        input = {best};
    }
    llama_free(context);
    return tokens;
}

TEST(Engine, AnswersWhatTheModelWasTrainedOn) {
    const auto engine = tiny_engine();
    EXPECT_EQ(answer(*engine, "What is 2+3?"), "2+3=5");
    EXPECT_THAT(answer(*engine, "What is the capital of France?"), HasSubstr("Paris"));
    EXPECT_THAT(answer(*engine, "What is the opposite of hot?"), HasSubstr("cold"));
}

TEST(Engine, GeneratesTheTokensThatLlamaCppGenerates) {
    const auto engine = tiny_engine();
    for (const char* text :
         {"What is 7+8?", "Tell me a story about a fox.", "Which day comes after Monday?"}) {
        const GenerationRequest request = question(*engine, text);
        const Tokens expected = reference(*engine, request.prompt, 64);
        EXPECT_EQ(ask(*engine, request)->wait().tokens, expected) << text;
    }
}

TEST(Engine, GivesEachOfManyStreamsItsOwnAnswer) {
    const auto engine = tiny_engine();
    std::vector<std::pair<std::string, std::shared_ptr<Generation>>> running;
    for (int a = 0; a < 10; ++a)
        for (int b : {1, 4, 7}) {
            const std::string sum = fmt::format("{}+{}", a, b);
            running.emplace_back(fmt::format("{}={}", sum, a + b),
                                 ask(*engine, question(*engine, "What is " + sum + "?")));
        }
    for (auto& [expected, generation] : running) EXPECT_EQ(generation->wait().text, expected);
}

TEST(Engine, FinishesAllStreamsOfAContextThatIsTooShortForThem) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 256;
    settings.context.n_parallel = 16;
    const auto engine = tiny_engine(settings);
    RequestSettings long_one = settings.request;
    long_one.n_predict = 120;
    std::vector<std::shared_ptr<Generation>> sums, stories;
    for (const char* animal : {"fox", "bird", "cat", "dog", "bear", "owl", "duck", "mouse"}) {
        stories.push_back(
            ask(*engine, question(*engine, fmt::format("Tell me a story about a {}.", animal), long_one)));
        sums.push_back(ask(*engine, question(*engine, fmt::format("What is {}+4?", sums.size()))));
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
        EXPECT_EQ(sums[i]->wait().text, fmt::format("{0}+4={1}", i, i + 4));
    for (auto& story : stories) {
        EXPECT_THAT(story->wait().text, testing::StartsWith("Once upon a time there was a "));
        EXPECT_FALSE(story->wait().failed());
    }
    EXPECT_GT(engine->statistics().evictions, 0u);
}

TEST(Engine, ReadsWhatPromptsHaveInCommonOnce) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.n_predict = 4;
    settings.system_prompt = "You are a helpful assistant.";
    for (int i = 0; i < 40; ++i) settings.system_prompt += " Be brief.";
    engine->clear_cache();
    // All four begin in one step: when this one ends.
    RequestSettings urgent = endless_request(tiny_settings().request);
    urgent.priority = Priority::urgent;
    const auto first = ask(*engine, question(*engine, "What is 2+3?", urgent));
    ASSERT_TRUE(first->next().ok());
    const std::uint64_t before = engine->statistics().prompt_tokens;
    std::vector<std::shared_ptr<Generation>> running;
    std::size_t longest = 0;
    for (int i = 0; i < 4; ++i) {
        GenerationRequest request = question(*engine, fmt::format("What is {}+1?", i), settings);
        longest = std::max(longest, request.prompt.size());
        running.push_back(ask(*engine, std::move(request)));
    }
    first->cancel();
    for (auto& generation : running) generation->wait();
    EXPECT_LT(engine->statistics().prompt_tokens - before, longest + 4 * 24);
}

TEST(Engine, RemembersAPromptItHasRead) {
    const auto engine = tiny_engine();
    const GenerationRequest request = question(*engine, "Which day comes after Monday?");
    ask(*engine, request)->wait();
    const Outcome outcome = ask(*engine, request)->wait();
    EXPECT_EQ(outcome.cached_tokens, static_cast<int>(request.prompt.size()) - 1);
    GenerationRequest forgetful = request;
    forgetful.settings.cache_prompt = false;
    EXPECT_EQ(ask(*engine, forgetful)->wait().cached_tokens, 0);
}

TEST(Engine, LetsAHigherPriorityOvertakeAndPauseLowerOnes) {
    Settings settings = tiny_settings();
    settings.context.n_parallel = 2;
    settings.context.n_ctx = 1024;
    const auto engine = tiny_engine(settings);
    RequestSettings low = endless_request(settings.request, 200), high = settings.request;
    low.priority = Priority::low;
    high.priority = Priority::high;
    std::vector<std::shared_ptr<Generation>> slow;
    for (int i = 0; i < 4; ++i)
        slow.push_back(ask(*engine, question(*engine, fmt::format("Count from {} to 20.", i), low)));
    ASSERT_TRUE(slow[0]->next().ok());
    const auto quick = ask(*engine, question(*engine, "What is 2+3?", high));
    EXPECT_EQ(quick->wait().text, "2+3=5");
    EXPECT_FALSE(slow[0]->done());
    EXPECT_FALSE(slow[1]->done());
    for (auto& generation : slow) EXPECT_EQ(generation->wait().reason, StopReason::token_limit);
    EXPECT_GE(slow[0]->wait().pauses, 1);
}

TEST(Engine, BreaksOffTheReadingOfALongPromptForAMoreUrgentRequest) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 4096;
    settings.context.n_batch = settings.context.n_ubatch = 2048;  // the prompt is one long step
    const auto engine = tiny_engine(settings);
    RequestSettings low = settings.request, high = settings.request;
    low.priority = Priority::low;
    low.cache_prompt = high.cache_prompt = false;
    low.n_predict = 4;
    high.priority = Priority::urgent;
    std::string text;
    for (int i = 0; i < 60; ++i) text += fmt::format("What is {}+{}? ", i % 10, i % 7);
    const Outcome alone = ask(*engine, question(*engine, text, low))->wait();
    for (int round = 0; round < 50 && engine->statistics().overtaken_steps == 0; ++round) {
        const auto slow = ask(*engine, question(*engine, text, low));
        std::this_thread::sleep_for(std::chrono::milliseconds(1 + round % 20));
        EXPECT_EQ(ask(*engine, question(*engine, "What is 2+3?", high))->wait().text, "2+3=5");
        const Outcome& outcome = slow->wait();
        EXPECT_EQ(outcome.tokens, alone.tokens);
        EXPECT_EQ(outcome.cached_tokens, 0);
    }
    EXPECT_GT(engine->statistics().overtaken_steps, 0u);
}

TEST(Engine, APauseChangesNoAnswerAndForgetsNothing) {
    for (const int places : {1, 64}) {  // 1: what the paused one has read goes to the memory beside
        Settings settings = tiny_settings();
        settings.context.n_parallel = 1;
        settings.context.max_sequences = places;
        RequestSettings low = endless_request(settings.request, 100), high = settings.request;
        low.priority = Priority::low;
        high.priority = Priority::high;
        const std::string text =
            "Tell me a story about a fox, a hen, a dog, a cat, a cow and a very old bear.";
        low.cache_prompt = false;
        const auto engine = tiny_engine(settings);
        const Outcome alone = ask(*engine, question(*engine, text, low))->wait();
        const std::uint64_t before = engine->statistics().prompt_tokens;
        const auto paused = ask(*engine, question(*engine, text, low));
        ASSERT_TRUE(paused->next().ok());
        const auto quick = ask(*engine, question(*engine, "What is 2+3?", high));
        EXPECT_EQ(paused->wait().tokens, alone.tokens);
        EXPECT_EQ(paused->wait().pauses, 1);
        EXPECT_LE(engine->statistics().prompt_tokens - before,
                  static_cast<std::uint64_t>(paused->wait().prompt_tokens + quick->wait().prompt_tokens))
            << places;
    }
}

TEST(Engine, CancelsWithinAStepAndGoesOn) {
    const auto engine = tiny_engine();
    RequestSettings endless = endless_request(tiny_settings().request, 400);
    const auto generation = ask(*engine, question(*engine, "Tell me a story.", endless));
    ASSERT_TRUE(generation->next().ok());
    generation->cancel();
    const Outcome& outcome = generation->wait();
    EXPECT_EQ(outcome.reason, StopReason::cancelled);
    EXPECT_LT(outcome.tokens.size(), 400u);
    EXPECT_EQ(answer(*engine, "What is 2+3?"), "2+3=5");
}

TEST(Engine, EndsRequestsWhoseTimeIsOver) {
    Settings settings = tiny_settings();
    settings.context.n_parallel = 1;
    const auto engine = tiny_engine(settings);
    RequestSettings endless = endless_request(settings.request, 440);
    RequestSettings hasty = settings.request;
    hasty.timeout_ms = 0;
    RequestSettings impatient = settings.request;
    impatient.queue_timeout_ms = 1;
    const auto first = ask(*engine, question(*engine, "Tell me a story.", endless));
    ASSERT_TRUE(first->next().ok());
    EXPECT_EQ(ask(*engine, question(*engine, "What is 2+3?", hasty))->wait().reason, StopReason::timed_out);
    const Outcome waited = ask(*engine, question(*engine, "What is 2+3?", impatient))->wait();
    EXPECT_EQ(waited.reason, StopReason::timed_out);
    EXPECT_THAT(waited.detail, HasSubstr("queue_timeout_ms"));
    first->cancel();
}

TEST(Engine, SaysThatItIsBusyWhenTooManyWait) {
    Settings settings = tiny_settings();
    settings.context.n_parallel = 1;
    settings.queue.max_waiting = 2;
    const auto engine = tiny_engine(settings);
    RequestSettings endless = endless_request(settings.request, 400);
    const auto first = ask(*engine, question(*engine, "Tell me a story.", endless));
    ASSERT_TRUE(first->next().ok());
    const auto second = ask(*engine, question(*engine, "What is 1+1?")),
               third = ask(*engine, question(*engine, "What is 1+2?"));
    const auto refused = engine->submit(question(*engine, "What is 1+3?"));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::busy);
    first->cancel();
    EXPECT_EQ(second->wait().text, "1+1=2");
    EXPECT_EQ(third->wait().text, "1+2=3");
    EXPECT_EQ(engine->statistics().rejected, 1u);
}

TEST(Engine, RefusesPromptsItCannotRead) {
    const auto engine = tiny_engine();
    const auto code_of = [&](Tokens prompt) {
        const auto refused =
            engine->submit({.prompt = std::move(prompt), .settings = tiny_settings().request});
        return refused.ok() ? std::optional<Code>() : refused.error().code;
    };
    EXPECT_EQ(code_of({}), Code::invalid_argument);
    EXPECT_EQ(code_of({-1}), Code::invalid_argument);
    EXPECT_EQ(code_of({1 << 20}), Code::invalid_argument);
    EXPECT_EQ(code_of(Tokens(512, 5)), Code::prompt_too_long);
    GenerationRequest wrong = question(*engine, "Hi");
    wrong.settings.grammar = "root ::= (";
    EXPECT_FALSE(engine->submit(wrong).ok());
    wrong.settings.grammar.clear();
    wrong.settings.json_schema = R"({"type": "nonsense"})";
    EXPECT_FALSE(engine->submit(wrong).ok());
}

TEST(Engine, StopsWhenTheContextIsFullOrShiftsIt) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 256;
    RequestSettings endless = endless_request(settings.request, 600);
    auto engine = tiny_engine(settings);
    Outcome outcome = ask(*engine, question(*engine, "Tell me a story.", endless))->wait();
    EXPECT_EQ(outcome.reason, StopReason::context_full);
    EXPECT_LE(outcome.tokens.size(), 256u);
    settings.context.context_shift = true;
    engine = tiny_engine(settings);
    outcome = ask(*engine, question(*engine, "Tell me a story.", endless))->wait();
    EXPECT_EQ(outcome.reason, StopReason::token_limit);
    EXPECT_EQ(outcome.tokens.size(), 600u);
    EXPECT_GE(outcome.shifts, 2);
}

TEST(Engine, FollowsGrammarsAndSchemas) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.grammar = R"(root ::= "yes" | "no")";
    EXPECT_THAT(ask(*engine, question(*engine, "Hello", settings))->wait().text, testing::AnyOf("yes", "no"));
    settings.grammar.clear();
    settings.json_schema =
        R"({"type": "object", "properties": {"age": {"type": "integer", "maximum": 99, "minimum": 1}}, "required": ["age"]})";
    const auto json =
        nlohmann::json::parse(ask(*engine, question(*engine, "Make JSON: age 7.", settings))->wait().text);
    EXPECT_TRUE(json.at("age").is_number_integer());
}

TEST(Engine, StopsBeforeAStopString) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.stopping.strings = {", 5"};
    const Outcome outcome = ask(*engine, question(*engine, "Count from 1 to 9.", settings))->wait();
    EXPECT_EQ(outcome.text, "1, 2, 3, 4");
    EXPECT_EQ(outcome.reason, StopReason::stop_string);
    EXPECT_EQ(outcome.detail, ", 5");
}

TEST(Engine, SpeculationChangesNoAnswer) {
    const auto engine = tiny_engine();
    RequestSettings eager = tiny_settings().request;
    eager.chat = "on";
    eager.speculation = {.enabled = true, .n_max = 8, .ngram_size = 2, .min_acceptance = 0};
    int accepted = 0;
    for (const auto& [text, answer] : {std::pair{"What is 2+3?", "2+3=5"},
                                       {"What is the capital of Italy?", "The capital of Italy is Rome."}}) {
        Messages history;
        for (int i = 0; i < 3; ++i) history.insert(history.end(), {{"user", text}, {"assistant", answer}});
        RequestSettings asked = eager;
        const Prompt prompt = make_prompt(engine->model(), history, text, 512, asked).value();
        const Outcome outcome = ask(*engine, {.prompt = prompt.tokens, .settings = asked})->wait();
        EXPECT_EQ(outcome.text, answer);
        EXPECT_LE(outcome.accepted, outcome.drafted);
        accepted += outcome.accepted;
    }
    EXPECT_GT(accepted, 4);
}

TEST(Engine, ListsTheProbabilitiesOfEveryTokenOfADraft) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.chat = "on";
    settings.sampling.n_probs = 2;
    Messages history;
    for (int i = 0; i < 3; ++i)
        history.insert(history.end(), {{"user", "What is 2+3?"}, {"assistant", "2+3=5"}});
    for (const bool after_sampling : {false, true}) {
        settings.post_sampling_probs = after_sampling;
        settings.speculation = {.enabled = true, .n_max = 8, .ngram_size = 2, .min_acceptance = 0};
        RequestSettings asked = settings;
        const Prompt prompt = make_prompt(engine->model(), history, "What is 2+3?", 512, asked).value();
        const Outcome outcome = ask(*engine, {.prompt = prompt.tokens, .settings = asked})->wait();
        EXPECT_GT(outcome.accepted, 1);
        ASSERT_EQ(outcome.probabilities.size(), outcome.tokens.size());
        for (std::size_t i = 0; i < outcome.tokens.size(); ++i)
            EXPECT_EQ(outcome.probabilities[i].front().token, outcome.tokens[i])
                << "token " << i << ", after sampling: " << after_sampling;
    }
}

TEST(Engine, ADraftModelIsAskedAndChangesNoAnswer) {
    Settings settings = tiny_settings();
    settings.context.draft_model = tiny_model();
    const auto engine = tiny_engine(settings), plain = tiny_engine();
    RequestSettings eager = settings.request;
    eager.speculation.enabled = true;
    for (const char* text : {"Tell me a story about a bird.", "What is the capital of Italy?"}) {
        const Outcome outcome = ask(*engine, question(*engine, text, eager))->wait();
        EXPECT_EQ(outcome.tokens, ask(*plain, question(*plain, text))->wait().tokens) << text;
        EXPECT_GT(outcome.drafted, 0);
        EXPECT_GT(outcome.accepted, outcome.drafted / 2) << "it drafts for itself";
    }
}

TEST(Engine, RepeatsASeededAnswerAndListsProbabilities) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.sampling.temp = 1.5f;
    settings.sampling.seed = 42;
    settings.sampling.n_probs = 3;
    const Outcome one = ask(*engine, question(*engine, "Tell me a story.", settings))->wait();
    const Outcome two = ask(*engine, question(*engine, "Tell me a story.", settings))->wait();
    EXPECT_EQ(one.tokens, two.tokens);
    settings.sampling.seed = 43;
    EXPECT_NE(ask(*engine, question(*engine, "Tell me a story.", settings))->wait().tokens, one.tokens);
    ASSERT_EQ(one.probabilities.size(), one.tokens.size());
    for (const auto& row : one.probabilities) {
        ASSERT_EQ(row.size(), 3u);
        EXPECT_GE(row[0].probability, row[1].probability);
    }
}

TEST(Engine, GivesThePromptsTokensTheProbabilitiesThatTheyHadAsAnswers) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.sampling.n_probs = 2;
    settings.n_predict = 12;
    const GenerationRequest asked = question(*engine, "Tell me a story.", settings);
    const Outcome written = ask(*engine, asked)->wait();
    ASSERT_GT(written.tokens.size(), 4u);

    settings.prompt_probs = true;
    settings.n_predict = 0;
    GenerationRequest again{.prompt = asked.prompt, .settings = settings};
    again.prompt.insert(again.prompt.end(), written.tokens.begin(), written.tokens.end());
    for (int time = 0; time < 2; ++time) {  // the second time all of it is remembered
        const Outcome scored = ask(*engine, again)->wait();
        EXPECT_EQ(scored.cached_tokens, 0);
        ASSERT_EQ(scored.prompt_token_probabilities.size(), again.prompt.size() - 1);
        ASSERT_EQ(scored.prompt_probabilities.size(), again.prompt.size() - 1);
        for (std::size_t i = 0; i < written.tokens.size(); ++i) {
            const std::size_t at = asked.prompt.size() + i - 1;
            EXPECT_NEAR(scored.prompt_token_probabilities[at], written.token_probabilities[i], 0.05) << i;
            ASSERT_EQ(scored.prompt_probabilities[at].size(), 2u);
            EXPECT_EQ(scored.prompt_probabilities[at][0].token, written.tokens[i]) << "the likeliest " << i;
        }
        EXPECT_TRUE(scored.tokens.empty());
    }
}

TEST(Engine, ReadsLongPromptsForTheirProbabilitiesBesideOthers) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.prompt_probs = true;
    settings.n_predict = 1;
    std::string text;
    for (int i = 0; i < 20; ++i) text += " The capital of France is Paris.";
    const Tokens prompt = engine->model().tokenize(text, true, false);
    ASSERT_GT(prompt.size(), 200u) << "more than a step keeps the logits of";
    const auto first = ask(*engine, {.prompt = prompt, .settings = settings});
    const auto second = ask(*engine, {.prompt = prompt, .settings = settings});
    for (const auto& generation : {first, second}) {
        const Outcome& outcome = generation->wait();
        ASSERT_EQ(outcome.prompt_token_probabilities.size(), prompt.size() - 1) << outcome.detail;
        EXPECT_GT(outcome.prompt_token_probabilities.back(), outcome.prompt_token_probabilities.front());
        EXPECT_EQ(outcome.tokens.size(), 1u);
    }
}

TEST(Engine, ReadsOnlyThePromptWhenNoTokensAreWanted) {
    const auto engine = tiny_engine();
    RequestSettings settings = tiny_settings().request;
    settings.n_predict = 0;
    const Outcome outcome = ask(*engine, question(*engine, "Hello", settings))->wait();
    EXPECT_EQ(outcome.text, "");
    EXPECT_EQ(outcome.reason, StopReason::token_limit);
}

TEST(EngineThreads, ServesRequestsOfManyThreadsAtOnce) {
    const auto engine = tiny_engine();
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 12; ++i) {
                const auto generation = ask(*engine, question(*engine, fmt::format("What is {}+{}?", t, i)));
                if (i % 4 == 3) {
                    generation->cancel();
                    generation->wait();
                } else {
                    wrong += generation->wait().text != fmt::format("{}+{}={}", t, i, t + i);
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
}

TEST(EngineThreads, EndsWhatRunsWhenItIsDestroyed) {
    Settings settings = tiny_settings();
    settings.context.n_ctx = 448;
    auto engine = tiny_engine(settings);
    RequestSettings endless = endless_request(settings.request, 400);
    const auto generation = ask(*engine, question(*engine, "Tell me a story.", endless));
    ASSERT_TRUE(generation->next().ok());
    engine.reset();
    EXPECT_EQ(generation->wait().reason, StopReason::cancelled);
    generation->cancel();
}

}  // namespace
}  // namespace headrace::llm
