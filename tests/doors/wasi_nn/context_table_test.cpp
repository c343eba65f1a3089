#include "doors/wasi_nn/context_table.h"
#include "checkout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <thread>

#include "llm/engine/registry.h"
#include "llm/tiny_model.h"

namespace headrace::wasi_nn {

using namespace llm;
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kGreedy = R"({"temp": 0, "n_predict": 64, "threads": 1})";

class ContextTableTest : public testing::Test {
protected:
    void make(std::string_view config = "", const Defaults& defaults = {}) {
        auto created = ContextTable::create(config, defaults);
        ASSERT_TRUE(created.ok()) << created.error().message;
        service = std::move(created).value();
        const auto loaded = service->load(tiny_model(), kGreedy);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        graph = loaded.value();
    }
    ContextId open(std::optional<std::string_view> session = std::nullopt) {
        const auto context = service->open(graph, session);
        EXPECT_TRUE(context.ok()) << context.error().message;
        return context.ok() ? context.value() : 0;
    }
    std::string say(ContextId context, std::string_view text, std::string_view parameters = "") {
        const auto reply = service->infer(context, text, parameters);
        return reply.ok() ? reply.value().text : "error: " + reply.error().message;
    }

    std::unique_ptr<ContextTable> service;
    GraphId graph = 0;
};

TEST_F(ContextTableTest, RemembersAConversationAndKeepsItFromOthers) {
    make();
    const auto ada = open("ada"), leo = open("leo"), nobody = open();
    say(ada, "My name is Ada.");
    say(leo, "My name is Leo.");
    EXPECT_EQ(say(ada, "What is my name?"), "Your name is Ada.");
    EXPECT_EQ(say(leo, "What is my name?"), "Your name is Leo.");
    EXPECT_THAT(say(nobody, "What is my name?"),
                testing::Not(testing::AnyOf(HasSubstr("Ada"), HasSubstr("Leo."))));
    const auto again = open("ada");
    EXPECT_EQ(say(again, "What is my name?"), "Your name is Ada.");
}

TEST_F(ContextTableTest, TakesTheConversationFromTheRequestInPlaceOfTheSessions) {
    make();
    constexpr const char* ada = R"({"previous_messages": [{"role": "user", "content": "My name is Ada."},
                                                          {"role": "assistant", "content": "Nice to meet you, Ada!"}]})";
    const auto nobody = open(), leo = open("leo");
    EXPECT_EQ(say(nobody, "What is my name?", ada), "Your name is Ada.");
    say(leo, "My name is Leo.");
    EXPECT_EQ(say(leo, "What is my name?", ada), "Your name is Ada.");
    EXPECT_EQ(say(leo, "What is my name?"), "Your name is Ada.") << "what was given is remembered";
}

TEST_F(ContextTableTest, CountsTokensThatWereRememberedInTheStatistics) {
    make();
    const auto cached = [this] {
        return nlohmann::json::parse(service->statistics())["graphs"][0]["tokens"].value("cached", -1);
    };
    EXPECT_EQ(cached(), 0);
    const auto context = open();
    say(context, "What is 2+3?", R"({"history": false})");
    say(context, "What is 2+3?", R"({"history": false})");
    EXPECT_GT(cached(), 4);
}

TEST_F(ContextTableTest, TakesAPromptInTheTemplatesFormAsItIs) {
    make();
    const auto context = open();
    EXPECT_EQ(say(context, "<|im_start|>user\nWhat is 2+3?<|im_end|>\n<|im_start|>assistant\n"), "2+3=5");
    EXPECT_EQ(say(context, "What is 2+4?"), "2+4=6");
}

TEST_F(ContextTableTest, LeavesOutTheOldestMessagesOfALongConversation) {
    make();
    const auto context = open();
    say(context, "My name is Ada.");
    std::string metadata;
    for (int i = 0; i < 25; ++i) {
        const auto reply = service->infer(context, "What is the capital of France?", "");
        ASSERT_TRUE(reply.ok()) << i << reply.error().message;
        EXPECT_THAT(reply.value().text, HasSubstr("Paris"));
        metadata = reply.value().metadata;
    }
    EXPECT_GT(nlohmann::json::parse(metadata).value("dropped_messages", 0), 0);
}

TEST_F(ContextTableTest, ReportsTokensReasonAndTimesInTheMetadata) {
    make();
    const auto reply = service->infer(open(), "What is 2+3?", "");
    ASSERT_TRUE(reply.ok());
    const auto metadata = nlohmann::json::parse(reply.value().metadata);
    EXPECT_GT(metadata["input_tokens"], 5);
    EXPECT_GT(metadata["output_tokens"], 3);
    EXPECT_EQ(metadata["stop_reason"], "end_of_answer");
    EXPECT_GE(metadata["timings"]["generate_ms"], 0.0);
}

TEST_F(ContextTableTest, UsesTheDefaultsForOptionsThatAreNoJsonAndSaysSoWhereTheHostReadsThemLeniently) {
    make();
    for (const auto* text : {"{temperature=", "[1]", "7"}) {
        const auto reply = service->infer(open(), "What is 2+3?", text);
        ASSERT_FALSE(reply.ok()) << text;
        EXPECT_EQ(reply.error().code, Code::invalid_argument);
        EXPECT_THAT(reply.error().message, HasSubstr("parameters"));
    }
    make("", {.lenient = true});
    const auto reply = service->infer(open(), "What is 2+3?", "{temperature=");
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    EXPECT_EQ(reply.value().text, "2+3=5");
    EXPECT_THAT(reply.value().metadata, HasSubstr("the defaults are used"));
}

TEST_F(ContextTableTest, RefusesOptionsOutsideTheirRangeAndLoadsWhoseOptionsAreNoJson) {
    make();
    const auto refused = service->infer(open(), "What is 2+3?", R"({"temp": -7})");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::invalid_argument);
    EXPECT_THAT(refused.error().message, HasSubstr("temp"));
    const auto hot = service->infer(open(), "What is 2+3?", R"({"temp": 2.1})");
    ASSERT_FALSE(hot.ok());
    EXPECT_EQ(hot.error().code, Code::invalid_argument);
    EXPECT_THAT(hot.error().message, HasSubstr("'temperature' is 2.1; it must be a number from 0 to 2"));
    EXPECT_TRUE(service->infer(open(), "What is 2+3?", R"({"temp": 2})").ok());
    EXPECT_FALSE(service->load(tiny_model(), "{").ok());
}

TEST_F(ContextTableTest, GivesAnAnswerPieceByPiece) {
    make();
    const auto context = open();
    ASSERT_TRUE(service->set_input(context, 0, "Which month comes after May?").ok());
    std::string text;
    int pieces = 0;
    for (;; ++pieces) {
        const auto piece = service->compute_piece(context);
        ASSERT_TRUE(piece.ok()) << piece.error().message;
        if (!piece.value()) break;
        EXPECT_EQ(service->last_piece(context).value(), *piece.value());
        text += *piece.value();
    }
    EXPECT_EQ(text, "June comes after May.");
    EXPECT_GE(pieces, 1);
    EXPECT_EQ(service->output(context, 0).value(), text);
    EXPECT_EQ(service->compute_piece(context).error().code, Code::invalid_state) << "the prompt is used up";
}

TEST_F(ContextTableTest, TellsTheSpeedBesideEveryPieceWhenAsked) {
    make();
    for (const bool asked : {true, false}) {
        const auto context = open();
        ASSERT_TRUE(service->set_input(context, 0, "Which month comes after May?").ok());
        ASSERT_TRUE(
            service->set_input(context, 1, fmt::format(R"({{"timings_per_token": {}}})", asked)).ok());
        ASSERT_TRUE(service->compute_piece(context).ok());
        const auto metadata = service->output(context, 1);
        EXPECT_EQ(metadata.ok(), asked);
        if (!asked) continue;
        const auto speed = nlohmann::json::parse(metadata.value());
        EXPECT_GE(speed["output_tokens"], 1);
        EXPECT_GE(speed["timings"]["generated_per_second"], 0.0);
        while (service->compute_piece(context).value()) continue;
        EXPECT_THAT(service->output(context, 1).value(), HasSubstr("stop_reason"));
    }
}

TEST_F(ContextTableTest, GivesUpTheRestOfAnAnswer) {
    make();
    const auto context = open("ada");
    ASSERT_TRUE(service->set_input(context, 0, "Tell me a story.").ok());
    ASSERT_TRUE(service->set_input(context, 1, R"({"ignore_eos": true, "n_predict": 400})").ok());
    ASSERT_TRUE(service->compute_piece(context).ok());
    EXPECT_EQ(service->infer(open("ada"), "Hi", "").error().code, Code::busy);
    ASSERT_TRUE(service->end_pieces(context).ok());
    EXPECT_EQ(say(context, "What is 2+3?"), "2+3=5");
}

TEST_F(ContextTableTest, CancelsARequestThatWaitsForItsSession) {
    make();
    ASSERT_TRUE(
        service->load(tiny_model(), R"({"temp": 0, "threads": 1, "context_shift": true})", true).ok());
    const auto running = open("ada"), waiting = open("ada");
    std::thread endless([&] { say(running, "Tell me a story.", R"({"ignore_eos": true})"); });
    while (nlohmann::json::parse(service->statistics())["graphs"][0]["requests"]["running"] != 1)
        std::this_thread::yield();
    std::optional<Code> code;
    std::thread next([&] { code = service->infer(waiting, "What is 2+3?", "").error().code; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(service->cancel(waiting).ok());
    next.join();
    const auto requests = nlohmann::json::parse(service->statistics())["graphs"][0]["requests"];
    EXPECT_EQ(code, Code::cancelled);
    EXPECT_EQ(requests["running"], 1) << "it was told only when the other had ended";
    EXPECT_EQ(service->infer(waiting, "What is 2+3?", R"({"timeout_ms": 10})").error().code, Code::timed_out);
    ASSERT_TRUE(service->cancel(running).ok());
    endless.join();
    EXPECT_EQ(say(waiting, "What is 2+3?"), "2+3=5");
}

TEST_F(ContextTableTest, BoundsSessionsAndContexts) {
    make(R"({"max_sessions": 2, "max_concurrent": 2})");
    open();
    const auto second = open();
    EXPECT_EQ(service->open(graph).error().code, Code::busy);
    ASSERT_TRUE(service->close(second).ok());
    open();
    const auto ada = open("ada"), leo = open("leo");
    say(ada, "My name is Ada.");
    say(leo, "My name is Leo.");
    say(ada, "What is 1+1?");
    const auto mia = open("mia");  // closes leo's, the least recently used
    EXPECT_THAT(say(leo, "What is my name?"), HasSubstr("closed"));
    EXPECT_EQ(say(ada, "What is my name?"), "Your name is Ada.");
    EXPECT_EQ(say(mia, "What is 1+2?"), "1+2=3");
}

TEST_F(ContextTableTest, ClosesSessionsThatNobodyUses) {
    make(R"({"idle_timeout_ms": 100})");
    const auto ada = open("ada");
    say(ada, "My name is Ada.");
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    EXPECT_THAT(say(ada, "What is my name?"), HasSubstr("closed"));
    EXPECT_EQ(say(open("ada"), "What is 1+2?"), "1+2=3");
}

TEST_F(ContextTableTest, ConfinesNamesToTheModelRootAndAliases) {
    const std::string folder = checkout_path("models");
    auto created = ContextTable::create(
        nlohmann::json{{"model_root", folder}, {"model_aliases", {{"tiny", tiny_model()}}}}.dump());
    ASSERT_TRUE(created.ok()) << created.error().message;
    ContextTable& confined = *created.value();
    EXPECT_TRUE(confined.load("tiny", kGreedy).ok());
    EXPECT_TRUE(confined.load("tiny-chat-q8_0.gguf", kGreedy).ok());
    EXPECT_TRUE(confined.load(tiny_model(), kGreedy).ok());
    for (const char* name : {"../README.md", "/etc/passwd", "../models/../README.md", "a/../../README.md"})
        EXPECT_EQ(confined.load(name, kGreedy).error().code, Code::denied) << name;
    EXPECT_EQ(confined.load("missing.gguf", kGreedy).error().code, Code::not_found);
}

TEST_F(ContextTableTest, LetsNoGuestChooseAnotherHost) {
    const nlohmann::json root = {{"model_root", checkout_path("models")}, {"log_level", "none"}};
    auto confined = ContextTable::create(root.dump()).value();
    const auto refused = confined->load("tiny-chat-q8_0.gguf", R"({"devices": ["rpc://127.0.0.1:1"]})");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::denied);
}

TEST_F(ContextTableTest, RunsNoTemplatesOfGuestsWhenItIsConfined) {
    const std::string endless =
        R"({"chat_template": "{% for i in range(9999999999) %}{% endfor %}", "temp": 0})";
    const nlohmann::json root = {{"model_root", checkout_path("models")}};
    std::ifstream file(tiny_model(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    {
        auto confined = ContextTable::create(root.dump()).value();
        const auto refused = confined->load(tiny_model(), endless);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().code, Code::denied);
        EXPECT_THAT(refused.error().message, AllOf(HasSubstr("chat_template"), HasSubstr("guest_templates")));
        EXPECT_TRUE(confined->load(tiny_model(), kGreedy).ok()) << "the template of its own model";
        const auto brought = confined->load_bytes(bytes, Encoding::any, {.config = kGreedy});
        ASSERT_TRUE(brought.ok()) << brought.error().message;
        const auto reply =
            confined->infer(confined->open(brought.value(), std::nullopt).value(), "Hello.", "");
        ASSERT_TRUE(reply.ok()) << reply.error().message;
        EXPECT_THAT(reply.value().metadata, HasSubstr("written plainly"));
    }
    nlohmann::json trusting = root;
    trusting["guest_templates"] = true;
    auto confined = ContextTable::create(trusting.dump()).value();
    EXPECT_TRUE(confined->load(tiny_model(), R"({"chat_template": "{{ messages[0].content }}"})").ok());
}

TEST_F(ContextTableTest, ReplacesAModelWhileRequestsRun) {
    make();
    std::atomic<bool> stop = false;
    std::atomic<int> answers = 0, failures = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            const auto context = open(fmt::format("user {}", t));
            while (!stop) {
                if (say(context, "What is 2+3?") != "2+3=5") ++failures;
                ++answers;
            }
        });
    for (int context_size : {448, 384, 512}) {
        const auto loaded = service->load(
            tiny_model(),
            fmt::format(R"({{"temp": 0, "n_predict": 64, "threads": 1, "n_ctx": {}}})", context_size), true);
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        EXPECT_EQ(loaded.value(), graph);
        EXPECT_FALSE(service->load("no such file", kGreedy, true).ok());
        const int before = answers;
        while (answers < before + 6) std::this_thread::yield();
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failures, 0);
}

TEST_F(ContextTableTest, LoadsAModelFromMemoryAndSharesFilesThatAreOpen) {
    make();
    std::ifstream file(tiny_model(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto loaded = service->load_bytes(bytes, Encoding::any, {.config = kGreedy});
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const auto context = service->open(loaded.value());
    EXPECT_EQ(say(context.value(), "What is 2+3?"), "2+3=5");
    EXPECT_FALSE(service->load_bytes("GGUF", Encoding::any, {.config = kGreedy}).ok());
    const std::size_t models = registry_statistics().models;
    auto other = ContextTable::create("");
    ASSERT_TRUE(other.value()->load(tiny_model(), kGreedy).ok());
    EXPECT_EQ(registry_statistics().models, models);
}

TEST_F(ContextTableTest, AnswersWrongCallsWithErrors) {
    make();
    EXPECT_EQ(service->open(99).error().code, Code::not_found);
    EXPECT_EQ(service->compute(99).error().code, Code::not_found);
    const auto context = open();
    EXPECT_EQ(service->compute(context).error().code, Code::invalid_state);
    EXPECT_EQ(service->output(context, 0).error().code, Code::invalid_state);
    EXPECT_EQ(service->set_input(context, 2, "x").error().code, Code::invalid_argument);
    ASSERT_TRUE(service->set_input(context, 0, std::string(100000, 'x')).ok());
    EXPECT_EQ(service->compute(context).error().code, Code::prompt_too_long);
    EXPECT_EQ(nlohmann::json::parse(service->output(context, 1).value())["error"]["code"], "prompt_too_long");
    ASSERT_TRUE(service->close(context).ok());
    EXPECT_FALSE(service->close(context).ok());
    ASSERT_TRUE(service->unload(graph).ok());
    EXPECT_FALSE(service->unload(graph).ok());
}

TEST_F(ContextTableTest, ShowsItsStateAsJson) {
    make();
    say(open("ada"), "What is 2+3?");
    const auto statistics = nlohmann::json::parse(service->statistics());
    EXPECT_EQ(statistics["graphs"].size(), 1u);
    EXPECT_EQ(statistics["sessions"]["named"], 1);
    EXPECT_GE(statistics["graphs"][0]["requests"]["finished"], 1);
    EXPECT_GT(statistics["process"]["resident_bytes"], 1 << 20);
}

TEST_F(ContextTableTest, GivesVectorsWithinTheRequestsTimeAndUntilItIsCancelled) {
    const auto created = ContextTable::create("");
    ASSERT_TRUE(created.ok());
    ContextTable& vectors = *created.value();
    const auto loaded = vectors.load(
        tiny_model(), R"({"embeddings": true, "pooling": "mean", "n_ctx": 512, "threads": 1})", false);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const auto context = vectors.open(loaded.value()).value();
    EXPECT_TRUE(vectors.infer(context, "a dog", R"({"timeout_ms": 60000})").ok());
    const auto late = vectors.infer(context, "a dog", R"({"timeout_ms": 0})");
    ASSERT_FALSE(late.ok());
    EXPECT_EQ(late.error().code, Code::timed_out);
    std::atomic<bool> ended = false;
    std::thread other([&] {
        while (!ended) static_cast<void>(vectors.cancel(context));
    });
    auto cancelled = vectors.infer(context, "a dog", "");
    while (cancelled.ok()) cancelled = vectors.infer(context, "a dog", "");
    ended = true;
    other.join();
    EXPECT_EQ(cancelled.error().code, Code::cancelled);
}

}  // namespace
}  // namespace headrace::wasi_nn
