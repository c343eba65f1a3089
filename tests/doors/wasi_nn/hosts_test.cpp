// Configurations as hosts of other backends write them: libwasi_nn_backend.so takes them all, and they do
// what they say; libwasi_nn_llamacpp.so stays strict.
#include <gmock/gmock.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "checkout.h"
#include "doors/wasi_nn/chat_host.h"
#include "temporary_folder.h"

namespace headrace::wasi_nn_test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kStory = "Tell me a story.";
const json kQuiet = {{"n_threads", 1}, {"n_ctx", 512}, {"temperature", 0}, {"log_level", "none"}};

json with(json base, const json& more) {
    base.update(more);
    return base;
}

/// The library, and what it answers.
class WasiNnHosts : public testing::Test {
protected:
    void SetUp() override {
        if (wasi_nn_folder().empty())
            GTEST_SKIP() << "language models are not built: llama.cpp is not set up";
        if (!std::filesystem::exists(model_path())) GTEST_SKIP() << model_path() << " does not exist";
        library.emplace(Abi::backend);
    }

    struct Answer {
        int code;
        std::string text;
        json metadata;

        std::string reason() const { return metadata.value("stop_reason", "none"); }
        /// What was said about parameters, in one text.
        std::string warnings() const {
            return metadata.contains("warnings") ? metadata["warnings"].dump() : "";
        }
    };
    Answer ask(const Host& host, std::uint32_t context, std::string_view prompt,
               std::string_view options = {}) const {
        const Output output = library->run_inference(host.ctx(), context, prompt, options);
        const std::string metadata = library->get_output(host.ctx(), context, 1).text();
        return {output.code, output.code == 0 ? output.text() : "", json::parse(metadata, nullptr, false)};
    }

    /// The configuration in each of the places that take one; beside it stands what makes the model small.
    void in_each_place(const json& config, std::string_view prompt,
                       const std::function<void(const Answer&)>& check) const {
        const std::string alone = config.dump(), whole = with(kQuiet, config).dump(), base = kQuiet.dump();
        const auto run = [&](const char* place, std::string_view init, std::string_view load,
                             std::string_view options) {
            SCOPED_TRACE(std::string(place) + " " + alone);
            const Host host(*library, init);
            const Answer answer = ask(host, host.open(host.load(load)), prompt, options);
            ASSERT_EQ(answer.code, 0) << answer.metadata;
            check(answer);
        };
        run("init_backend_with_config", whole, "", "");
        run("load_by_name_with_config", base, alone, "");
        run("run_inference", base, "", alone);
    }

    std::optional<Library> library;
};

json stopping(const json& members) { return {{"stopping", members}}; }

TEST_F(WasiNnHosts, TakeAWholeConfigurationInEveryPlace) {
    const json config = json::parse(R"({
        "model": {"n_gpu_layers": 0, "ctx_size": 512, "batch_size": 256, "threads": 1},
        "sampling": {"temp": 0, "top_p": 0.95, "top_k": 40, "repeat_penalty": 1.0, "penalty_last_n": 64},
        "stopping": {
            "max_tokens": 100, "stop_sequences": ["###"], "max_time_ms": 30000, "ignore_eos": false,
            "grammar_triggers": {"enabled": true, "patterns": ["^\\s*$", "\\b(END|STOP|DONE)\\b"]},
            "timeout_config": {"enabled": true, "adaptive_timeout": true, "min_timeout_ms": 20000,
                               "timeout_multiplier": 2.0},
            "semantic_stopping": {"enabled": true, "completion_confidence_threshold": 0.95,
                                  "repetition_detection": true, "max_repetition_count": 5},
            "token_filters": {"forbidden_tokens": ["<bad>"], "required_tokens": ["="],
                              "pattern_based_triggers": ["^\\s*$"]}},
        "backend": {"max_sessions": 10, "max_concurrent": 5, "queue_size": 20, "queue_warning_threshold": 15,
                    "queue_reject_threshold": 18, "default_task_timeout_ms": 60000,
                    "priority_scheduling_enabled": true, "fair_scheduling_enabled": true,
                    "auto_queue_cleanup": true, "auto_cleanup_sessions": true, "idle_timeout_ms": 60000},
        "memory": {"cache_prompt": true, "context_shifting": true, "max_cache_tokens": 1000},
        "memory_policy": {"cache_strategy": "lru", "max_cache_tokens": 1000},
        "performance": {"batch_processing": true},
        "logging": {"level": "none", "enable_debug": false, "timestamps": true, "colors": false}})");
    in_each_place(config, kQuestion, [](const Answer& answer) {
        EXPECT_THAT(answer.text, StartsWith("2+3=5"));
        EXPECT_EQ(answer.reason(), "end_of_answer");
        EXPECT_THAT(answer.warnings(), Not(HasSubstr("is not known")));
        for (const char* name :
             {"queue_warning_threshold", "priority_scheduling_enabled", "auto_queue_cleanup",
              "max_cache_tokens", "cache_strategy", "batch_processing", "timestamps"})
            EXPECT_THAT(answer.warnings(), HasSubstr(name)) << "has no effect, and says so";
    });
}

TEST_F(WasiNnHosts, EndAnswersAtPatternsOfAnObject) {
    for (const json& config :
         {stopping({{"grammar_triggers", {{"enabled", true}, {"patterns", {"^\\s*$", "="}}}}}),
          json{{"grammar_triggers", {{"patterns", {"="}}}}},
          stopping({{"token_filters", {{"pattern_based_triggers", {"^\\s*$", "="}}}}}),
          json{{"token_filters", {{"pattern_based_triggers", {"[0-9]="}}}}}})
        in_each_place(config, kQuestion, [](const Answer& answer) {
            EXPECT_EQ(answer.text, "2+3=");
            EXPECT_EQ(answer.reason(), "pattern");
            EXPECT_THAT(answer.warnings(), IsEmpty());
        });
    in_each_place(stopping({{"grammar_triggers", {{"patterns", {"[.!?]\\s*$"}}}}}), "Tell me a story.",
                  [](const Answer& answer) {
                      EXPECT_THAT(answer.text, MatchesRegex("[^.!?]+[.!?]")) << "one sentence";
                      EXPECT_EQ(answer.reason(), "pattern");
                  });
    in_each_place(stopping({{"grammar_triggers", {{"enabled", false}, {"patterns", {"="}}}}}), kQuestion,
                  [](const Answer& answer) { EXPECT_THAT(answer.text, StartsWith("2+3=5")); });
}

TEST_F(WasiNnHosts, LeaveOutPatternsThatCannotBeUsedAndSayWhich) {
    const json patterns = {"(?=look)", "+", "(a)\\1", 7, "="};
    in_each_place({{"token_filters", {{"pattern_based_triggers", {"(?=look)", "+", "(a)\\1", "="}}}}},
                  kQuestion, [](const Answer& answer) {
                      EXPECT_EQ(answer.text, "2+3=");
                      EXPECT_THAT(answer.warnings(),
                                  AllOf(HasSubstr("look-ahead"), HasSubstr("nothing to repeat"),
                                        HasSubstr("back references")));
                  });
    in_each_place({{"grammar_triggers", {{"patterns", patterns}}}}, kQuestion, [](const Answer& answer) {
        EXPECT_THAT(answer.text, StartsWith("2+3=5"));
        EXPECT_THAT(answer.warnings(), HasSubstr("grammar_triggers"));
    });
}

TEST_F(WasiNnHosts, StillNameTriggersOfAGrammarInAList) {
    const json config = {{"grammar", "root ::= \"=\" \"7\""},
                         {"grammar_lazy", true},
                         {"grammar_triggers", {{{"type", "word"}, {"value", "="}}}}};
    in_each_place(config, kQuestion, [](const Answer& answer) { EXPECT_EQ(answer.text, "2+3=7"); });
}

TEST_F(WasiNnHosts, NeverGetAForbiddenText) {
    // Whole words, texts that several tokens spell, parts of tokens, one character, and several of these.
    const std::vector<std::vector<std::string>> all = {{"2+3=5"}, {"=5"}, {"+3"}, {"5"}, {"2", "="}};
    for (const auto& forbidden : all) {
        const json config =
            stopping({{"token_filters", {{"forbidden_tokens", forbidden}}}, {"max_tokens", 40}});
        in_each_place(config, kQuestion, [&](const Answer& answer) {
            for (const std::string& text : forbidden) EXPECT_THAT(answer.text, Not(HasSubstr(text)));
            EXPECT_THAT(answer.text, Not(IsEmpty()));
        });
    }
}

TEST_F(WasiNnHosts, NeverGetAForbiddenTextBySamplingEither) {
    const Host host(*library, kQuiet.dump());
    const std::uint32_t context = host.open(host.load(""));
    const json forbidden = {"e", "the", " a", "one", "s ", "."};
    for (int seed = 0; seed < 12; ++seed) {
        const json options = {{"forbidden_tokens", forbidden},
                              {"temp", seed % 3},
                              {"seed", seed},
                              {"ignore_eos", true},
                              {"n_predict", 60},
                              {"n_probs", seed % 2},
                              {"speculative", seed % 4 == 0},
                              {"history", false}};
        const Answer answer = ask(host, context, kStory, options.dump());
        ASSERT_EQ(answer.code, 0) << answer.metadata;
        EXPECT_EQ(answer.metadata["output_tokens"], 60);
        for (const std::string text : forbidden) EXPECT_THAT(answer.text, Not(HasSubstr(text))) << options;
    }
}

TEST_F(WasiNnHosts, NeverSeeAForbiddenTextInPieces) {
    const Host host(*library, kQuiet.dump());
    const std::uint32_t context = host.open(host.load(R"({"forbidden_tokens": ["=5", "3="]})"));
    ASSERT_EQ(library->set_input(host.ctx(), context, 0, kQuestion), 0);
    std::string text;
    while (library->compute_single(host.ctx(), context) == 0)
        text += library->get_output_single(host.ctx(), context, 0).text();
    EXPECT_THAT(text, AllOf(Not(IsEmpty()), Not(HasSubstr("=5")), Not(HasSubstr("3="))));
}

TEST_F(WasiNnHosts, GetAForbiddenTextOfAGrammarAsAnError) {
    const Host host(*library, kQuiet.dump());
    const std::uint32_t context = host.open(host.load(""));
    const json options = {{"grammar", "root ::= \"yes\""}, {"forbidden_tokens", {"es"}}};
    const Answer answer = ask(host, context, kQuestion, options.dump());
    EXPECT_EQ(answer.code, 1);
    EXPECT_THAT(answer.metadata.dump(), HasSubstr("leave no token that may come next"));
    EXPECT_THAT(ask(host, context, kQuestion).text, StartsWith("2+3=5")) << "the next request is another's";
}

TEST_F(WasiNnHosts, GetNoEndBeforeARequiredText) {
    const auto required = [](const json& texts) {
        return stopping({{"token_filters", {{"required_tokens", texts}}}, {"max_tokens", 40}});
    };
    in_each_place(required({"zebra!"}), kQuestion, [](const Answer& answer) {
        EXPECT_THAT(answer.text, StartsWith("2+3=5"));
        EXPECT_EQ(answer.reason(), "token_limit") << "the answer ends at its limit all the same";
        EXPECT_EQ(answer.metadata["output_tokens"], 40);
    });
    for (const json& texts : {json{"+3="}, json{"zebra!", "=5"}, json{""}, json("2")})
        in_each_place(required(texts), kQuestion, [](const Answer& answer) {
            EXPECT_EQ(answer.text, "2+3=5");
            EXPECT_EQ(answer.reason(), "end_of_answer");
        });
    in_each_place(
        with(required({"zebra!"}), {{"grammar", "root ::= \"yes\""}}), kQuestion,
        [](const Answer& answer) { EXPECT_EQ(answer.text, "yes") << "the grammar is a limit, too"; });
    in_each_place(with(required({"zebra!"}), {{"temp", 0.7}, {"seed", 1}}), kQuestion,
                  [](const Answer& answer) { EXPECT_EQ(answer.reason(), "token_limit"); });
}

TEST_F(WasiNnHosts, LimitTheTimeOfAnAnswer) {
    const json endless = {{"ignore_eos", true}, {"n_predict", 300}};
    const auto limited = [&](const json& timeout) {
        return with(endless, stopping({{"timeout_config", timeout}}));
    };
    in_each_place(limited({{"enabled", true}, {"max_inference_time_ms", 1}}), kStory,
                  [](const Answer& answer) {
                      EXPECT_EQ(answer.reason(), "time_limit");
                      EXPECT_EQ(answer.metadata["stop_detail"], "1 ms");
                      EXPECT_LT(answer.metadata["output_tokens"], 300);
                  });
    in_each_place(limited({{"enabled", false}, {"max_inference_time_ms", 1}}), kStory,
                  [](const Answer& answer) { EXPECT_EQ(answer.reason(), "token_limit"); });
    in_each_place(with(endless, {{"max_time_ms", 1}}), kStory,
                  [](const Answer& answer) { EXPECT_EQ(answer.reason(), "time_limit"); });
}

TEST_F(WasiNnHosts, LimitTheTimeOfAnAnswerByItsOwnSpeed) {
    const auto adaptive = [](int least) {
        return json{{"ignore_eos", true},
                    {"n_predict", 300},
                    {"timeout_config",
                     {{"enabled", true},
                      {"adaptive_timeout", true},
                      {"max_inference_time_ms", 600000},
                      {"min_timeout_ms", least},
                      {"timeout_multiplier", 0.1}}}};
    };
    in_each_place(adaptive(0), kStory, [](const Answer& answer) {
        EXPECT_EQ(answer.reason(), "time_limit");
        EXPECT_GT(answer.metadata["output_tokens"], 16) << "the speed is not known before";
        EXPECT_LT(answer.metadata["output_tokens"], 300);
    });
    in_each_place(adaptive(600000), kStory,
                  [](const Answer& answer) { EXPECT_EQ(answer.reason(), "token_limit"); });
}

TEST_F(WasiNnHosts, EndAnswersThatRepeatThemselves) {
    const auto semantic = [](const json& members, const char* grammar) {
        return with({{"grammar", grammar}, {"n_predict", 120}}, stopping({{"semantic_stopping", members}}));
    };
    constexpr auto loop = R"(root ::= ("na" " ")+ "!")",
                   tale = R"(root ::= ("The cat sat on the mat. ")+ "!")";
    const auto ends = [](const char* reason) {
        return [=](const Answer& answer) { EXPECT_EQ(answer.reason(), reason) << answer.text; };
    };
    in_each_place(semantic({{"repetition_detection", true}, {"max_repetition_count", 3}}, loop), kStory,
                  ends("repetition"));
    in_each_place(semantic({{"enabled", false}, {"repetition_detection", true}}, loop), kStory,
                  [](const Answer& answer) { EXPECT_NE(answer.reason(), "repetition"); });
    in_each_place(semantic({{"enabled", true}, {"completion_confidence_threshold", 0.8}}, tale), kStory,
                  ends("similarity"));
    in_each_place(semantic({{"enabled", false}, {"completion_confidence_threshold", 0.8}}, tale), kStory,
                  [](const Answer& answer) { EXPECT_NE(answer.reason(), "similarity"); });
}

TEST_F(WasiNnHosts, TakeNumbersBeyondARangeAtItsEnd) {
    in_each_place({{"temperature", 5.0}}, kQuestion,
                  [](const Answer& answer) { EXPECT_THAT(answer.warnings(), IsEmpty()); });
    const json beyond = {{"sampling", {{"temp", -1}, {"top_p", 7}, {"repeat_penalty", 0}, {"min_keep", -4}}},
                         {"stopping", {{"max_tokens", -7}, {"max_time_ms", -30}}},
                         {"seed", -5},
                         {"priority", 9}};
    in_each_place(beyond, kQuestion, [](const Answer& answer) {
        for (const char* name :
             {"'sampling.temp' is -1; 0 is used", "'sampling.top_p' is 7; 1 is used",
              "'sampling.repeat_penalty' is 0; 0.001 is used", "'sampling.min_keep' is -4; 0",
              "'stopping.max_tokens' is -7; -1", "'stopping.max_time_ms' is -30; -1", "'seed' is -5; -1",
              "'priority' is 9; 3"})
            EXPECT_THAT(answer.warnings(), HasSubstr(name));
    });
}

TEST_F(WasiNnHosts, GetTheDefaultsForTextThatIsNoJson) {
    for (const std::string text : {"{", "n_predict=3", "[1]", "\"", "{\"temp\": 0.1, \"temp\": 0.2}"}) {
        const auto run = [&](std::string_view init, std::string_view load, std::string_view options) {
            const Host host(*library, init);
            const Answer answer = ask(host, host.open(host.load(load)), kQuestion, options);
            EXPECT_EQ(answer.code, 0) << text << answer.metadata;
            EXPECT_THAT(answer.warnings(), HasSubstr("the defaults are used")) << text;
            return answer.text;
        };
        run(text, kQuiet.dump(), "");
        EXPECT_THAT(run(kQuiet.dump(), text, ""), StartsWith("2+3=5"));
        EXPECT_THAT(run(kQuiet.dump(), "", text), StartsWith("2+3=5"));
    }
}

TEST_F(WasiNnHosts, HaveValuesThatCannotBeTakenLeftOut) {
    const json wrong = {{"n_predict", "many"},   {"threads", json::array()},
                        {"stop", {1, 2}},        {"logging", {{"level", "loud"}}},
                        {"grammar_triggers", 7}, {"token_filters", {{"forbidden_tokens", {{"a", 1}}}}}};
    in_each_place(wrong, kQuestion, [](const Answer& answer) {
        EXPECT_THAT(answer.text, StartsWith("2+3=5"));
        for (const char* name : {"n_predict", "stop", "grammar_triggers", "forbidden_tokens"})
            EXPECT_THAT(answer.warnings(), HasSubstr(name));
    });
    for (const char* config : {R"({"model_root": 7})", R"({"strict": true, "top_p": 7})",
                               R"({"strict": true, "n_predict": "many"})"}) {
        void* ctx = nullptr;
        EXPECT_EQ(library->init_backend_with_config(&ctx, config, std::uint32_t(strlen(config))), 1)
            << config;
    }
}

TEST_F(WasiNnHosts, LogToAFileThatTheyNameWithOrWithoutTheGroup) {
    const TemporaryFolder folder;
    for (const json& config : {json{{"logging", {{"file", folder / "one.log"}, {"level", "warn"}}}},
                               json{{"file", folder / "two.log"}, {"level", "warn"}}}) {
        const Host host(*library, with({{"max_cache_tokens", 3}}, config).dump());
    }
    { const Host other(*library, R"({"log_level": "info", "log_file": ""})"); }  // to stderr again
    EXPECT_THAT(folder.read("one.log"), HasSubstr("max_cache_tokens"));
    EXPECT_THAT(folder.read("two.log"), HasSubstr("max_cache_tokens"));
    in_each_place({{"logging", {{"file", folder / "no such folder/x.log"}}}}, kQuestion,
                  [](const Answer& answer) { EXPECT_THAT(answer.warnings(), HasSubstr("file")); });
    in_each_place({{"model", {{"file", "x.gguf"}}}}, kQuestion, [](const Answer& answer) {
        EXPECT_THAT(answer.warnings(), HasSubstr("'model.file' is not known")) << "it is no log";
    });
}

TEST_F(WasiNnHosts, HaveTheirOwnEnvironmentReadStrictly) {
    const EnvironmentVariable config("HEADRACE_CONFIG", R"({"top_p": 7})");
    void* ctx = nullptr;
    EXPECT_EQ(library->init_backend(&ctx), 1);
}

TEST_F(WasiNnHosts, OfWamrStayStrict) {
    const Library other(Abi::llamacpp);
    const Host host(other, kQuiet.dump());
    std::uint32_t graph = 0;
    const std::uint32_t context = host.open(host.load(kQuiet.dump()));
    for (const char* config :
         {R"({"grammar_triggers": {"enabled": true, "patterns": ["="]}})", R"({"temperature": -1})",
          R"({"top_p": 7})", R"({"n_predict": "many"})", R"({"grammar": "x", "json_schema": {}})"}) {
        EXPECT_EQ(host.try_load(model_path(), config, &graph), 1) << config;
        EXPECT_EQ(host.ask(context, kQuestion, config), "error 1") << config;
        void* ctx = nullptr;
        EXPECT_EQ(other.init_backend_with_config(&ctx, config, std::uint32_t(strlen(config))), 1) << config;
    }
    EXPECT_EQ(host.try_load(model_path(), "{", &graph), 1);
    EXPECT_EQ(host.ask(context, kQuestion, R"({"stop_patterns": ["a*"]})"), "error 1");
    EXPECT_EQ(
        host.ask(context, kQuestion, R"({"level": "debug", "token_filters": {"forbidden_tokens": ["=5"]}})")
            .find("=5"),
        std::string::npos)
        << "the parameters themselves are every library's";
}

}  // namespace
}  // namespace headrace::wasi_nn_test
