#include "doors/serve/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "doors/serve/options/flag_values.h"
#include "doors/serve/options/flags.h"
#include "llm/parameters/parameters.h"
#include "temporary_folder.h"

namespace headrace::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Arguments = std::vector<std::string>;
using Environment = std::map<std::string, std::string>;

Result<ServeOptions> read(const Arguments& arguments, const Environment& environment = {}) {
    return serve_options(arguments, environment);
}

ServeOptions read_well(const Arguments& arguments, const Environment& environment = {}) {
    Result<ServeOptions> options = read(arguments, environment);
    EXPECT_TRUE(options.ok()) << options.error().message;
    return options.ok() ? options.value() : ServeOptions();
}

ServeOptions as_program(const Arguments& arguments) {
    ServeOptions options = read_well(arguments);
    add_program_defaults(options);
    return options;
}

std::string refusal(const Arguments& arguments, const Environment& environment = {}) {
    const Result<ServeOptions> options = read(arguments, environment);
    EXPECT_FALSE(options.ok());
    return options.ok() ? std::string() : options.error().message;
}

std::int64_t number(const ServeOptions& options, std::string_view name) {
    const ParameterValue* value = options.parameters.find(name);
    return value ? std::get<std::int64_t>(*value) : -999;
}

TEST(ServeOptions, TakeAModelByItsPlaceOrItsFlag) {
    EXPECT_EQ(read_well({"a.gguf"}).model, "a.gguf");
    EXPECT_EQ(read_well({"-m", "a.gguf"}).model, "a.gguf");
    EXPECT_EQ(read_well({"--model=a.gguf"}).model, "a.gguf");
    EXPECT_THAT(read_well({"x/a.gguf"}).aliases, ElementsAre("a.gguf"));
    EXPECT_THAT(refusal({}), HasSubstr("no model"));
}

TEST(ServeOptions, DivideTheContextAsLlamaServerDoes) {
    EXPECT_EQ(number(read_well({"a.gguf", "-c", "512", "-np", "2"}), "n_ctx_per_request"), kPartOfContext);
    EXPECT_EQ(number(read_well({"a.gguf", "-c", "0"}), "n_ctx"), kWholeContext);
    EXPECT_EQ(number(as_program({"a.gguf"}), "n_ctx"), kWholeContext);
    EXPECT_EQ(number(as_program({"a.gguf", "-np", "2"}), "n_ctx_per_request"), kPartOfContext);
    EXPECT_EQ(number(as_program({"a.gguf", "-np", "2", "-c", "64"}), "n_ctx"), 64);
    // A program that has the model shares its engine.
    EXPECT_EQ(read_well({"a.gguf", "-np", "2"}).parameters.find("n_ctx"), nullptr);
    EXPECT_EQ(read_well({"a.gguf", "-np", "2"}).parameters.find("n_ctx_per_request"), nullptr);
    const ServeOptions per_slot = read_well({"a.gguf", "--kv-unified-per-slot", "100", "-np", "3"});
    EXPECT_EQ(number(per_slot, "n_ctx_per_request"), 100);
    EXPECT_EQ(number(per_slot, "n_ctx"), 300);
    EXPECT_EQ(read_well({"a.gguf", "-c", "512", "-np", "2", "-kvu"}).parameters.find("n_ctx_per_request"),
              nullptr);
    EXPECT_EQ(read_well({"a.gguf", "-c", "512"}).parameters.find("n_ctx_per_request"), nullptr);
    EXPECT_EQ(number(read_well({"a.gguf", "--parallel", "3"}), "n_parallel"), 3);
}

TEST(ServeOptions, KeepAsManyPromptsInMemoryAsLlamaServer) {
    EXPECT_EQ(number(as_program({"a.gguf"}), "cache_ram"), 8192);
    EXPECT_EQ(number(as_program({"a.gguf", "--cache-ram", "5"}), "cache_ram"), 5);
    EXPECT_EQ(read_well({"a.gguf"}).parameters.find("cache_ram"), nullptr);
}

TEST(ServeOptions, LogAsOtherCommandsAreTold) {
    const auto level = [](std::vector<std::string> arguments) {
        std::vector<std::string> rest;
        const auto none_is_kept = [](const std::string&) { return false; };
        const auto options = take_model_options(arguments, none_is_kept, rest).value();
        EXPECT_TRUE(rest.empty());
        const ParameterValue* value = options.parameters.find("log_level");
        return value ? std::get<std::string>(*value) : "";
    };
    EXPECT_EQ(level({"-c", "512"}), "");
    EXPECT_EQ(level({"--log-disable"}), "error");
    EXPECT_EQ(level({"-v"}), "debug");
    EXPECT_EQ(level({"-lv", "4"}), "info");
}

TEST(ServeOptions, SetTheEnginesParameters) {
    const ServeOptions options =
        read_well({"a.gguf", "-ngl", "all", "--temp", "0.5", "-fa", "on", "--no-jinja", "--lora-scaled",
                   "l.gguf:0.5", "--samplers", "top_k;temperature"});
    EXPECT_EQ(std::get<std::string>(*options.parameters.find("n_gpu_layers")), "all");
    EXPECT_EQ(std::get<double>(*options.parameters.find("temperature")), 0.5);
    EXPECT_EQ(std::get<bool>(*options.parameters.find("jinja")), false);
    EXPECT_EQ(std::get<std::vector<ParameterValue>>(*options.parameters.find("samplers")).size(), 2u);
}

std::string json(const ServeOptions& options, std::string_view name) {
    const ParameterValue* value = options.parameters.find(name);
    return value ? Parameters{{"value", *value}}.to_json() : "";
}

TEST(ServeOptions, OfLlamaServerMeanTheSame) {
    const auto read = [](const Arguments& flag, std::string_view parameter) {
        Arguments arguments = {"a.gguf"};
        arguments.insert(arguments.end(), flag.begin(), flag.end());
        return json(as_program(arguments), parameter);
    };
    EXPECT_EQ(read({"-ts", "3/1"}, "tensor_split"), R"({"value":[3.0,1.0]})");
    EXPECT_EQ(read({"--rpc", "a:1,b:2", "-dev", "CPU"}, "devices"),
              R"({"value":["rpc://a:1","rpc://b:2","CPU"]})");
    EXPECT_EQ(read({"-devd", "none"}, "draft_devices"), R"({"value":["CPU"]})");
    EXPECT_EQ(read({"-ncmoe", "1"}, "override_tensor"),
              R"({"value":["blk\\.0\\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"]})");
    EXPECT_EQ(read({"-cmoed"}, "draft_override_tensor"),
              R"({"value":["\\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"]})");
    EXPECT_EQ(read({"-ncffn", "1", "-ot", "a=CPU"}, "override_tensor"),
              R"({"value":["a=CPU","blk\\.0\\.ffn_(up|down|gate)\\.=CPU"]})");
    EXPECT_EQ(read({"-td", "2"}, "draft_threads") + read({"-tbd", "-1"}, "draft_threads_batch"),
              R"({"value":2}{"value":0})");
    EXPECT_EQ(read({"-l", "5+1.5", "-l", "6-2", "-l", "7-inf"}, "logit_bias"),
              R"({"value":[[5,1.5],[6,-2.0],[7,false]]})");
    EXPECT_EQ(read({"-fit", "off"}, "n_gpu_layers") + read({"-fitt", "256,256"}, "fit_margin_mib"),
              R"({"value":"all"}{"value":256})");
    EXPECT_EQ(
        read({"--no-reasoning-preserve", "--chat-template-kwargs", R"({"a":1})"}, "chat_template_kwargs"),
        R"({"value":{"a":1,"preserve_reasoning":false}})");
    EXPECT_EQ(read({"--spec-type", "draft-simple,ngram-simple"}, "speculative"), R"({"value":true})");
    EXPECT_EQ(read({"-lv", "5"}, "log_level"), R"({"value":"debug"})");
    EXPECT_EQ(read({"-ngl", "99"}, "n_gpu_layers") + read({"-ngld", "auto"}, "draft_gpu_layers"),
              R"({"value":99}{"value":"auto"})");
}

TEST(ServeOptions, UnescapeTextsUnlessTheyAreToldNotTo) {
    const Arguments texts = {"a.gguf", "-r", R"(a\n\x41\q)", "-r", R"(\\)"};
    EXPECT_EQ(json(read_well(texts), "stop"), R"({"value":["a\nA\\q","\\"]})");
    Arguments plain = texts;
    plain.push_back("--no-escape");
    EXPECT_EQ(json(read_well(plain), "stop"), R"({"value":["a\\n\\x41\\q","\\\\"]})");
}

TEST(ServeOptions, WaitAsLongAsLlamaServerDoes) {
    const ServeOptions options = read_well({"a.gguf"});
    EXPECT_EQ(options.listener.patience, std::chrono::seconds(3600));
    EXPECT_EQ(options.ping_interval, std::chrono::seconds(30));
    EXPECT_EQ(read_well({"a.gguf", "--sse-ping-interval", "-1"}).ping_interval, std::chrono::seconds(0));
}

TEST(ServeOptions, OfLlamaServerWithoutEffectAreNoted) {
    EXPECT_THAT(
        read_well({"a.gguf", "--prio", "2", "--no-cont-batching"}).notes,
        ElementsAre(HasSubstr("--prio has no effect"), HasSubstr("--no-cont-batching has no effect")));
    EXPECT_THAT(read_well({"a.gguf"}, {{"LLAMA_ARG_PERF", "1"}, {"HF_TOKEN", "x"}}).notes,
                ElementsAre(HasSubstr("LLAMA_ARG_PERF")));
    const TemporaryFolder folder;
    const std::string file = folder.write("serve.ini", "model = a.gguf\npoll = 3\n");
    EXPECT_THAT(read_well({"--config", file}).notes, ElementsAre(HasSubstr("serve.ini, line 2: poll")));
    for (const Flag& flag : flags()) {
        const bool acts = flag.kind != FlagKind::is_ignored && flag.kind != FlagKind::is_refused;
        EXPECT_NE(acts, flag.parameter.empty() && !flag.apply) << flag.names;
        EXPECT_TRUE(acts || flag.summary.size() > 10) << flag.names;
    }
}

TEST(ServeOptions, OfArgumentsComeBeforeTheEnvironmentAndAFile) {
    const TemporaryFolder folder;
    const std::string file = folder.write("serve.ini",
                                          "# a comment\nport = 1\nctx-size = 100\nmodel = file.gguf\n"
                                          "no-ui = true\nLLAMA_ARG_BATCH = 7\nc = 100\n");
    const Environment environment = {{"LLAMA_ARG_PORT", "2"}, {"LLAMA_ARG_CTX_SIZE", "200"}};
    const ServeOptions options = read_well({"--config", file, "--port", "3"}, environment);
    EXPECT_EQ(options.listener.port, 3);
    EXPECT_EQ(number(options, "n_ctx"), 200);
    EXPECT_EQ(number(options, "n_batch"), 7);
    EXPECT_EQ(options.model, "file.gguf");
    EXPECT_FALSE(options.offers_page);
}

TEST(ServeOptions, ThatAreUnknownAreErrorsWithASuggestion) {
    EXPECT_THAT(refusal({"a.gguf", "--prot", "1"}), HasSubstr("'--port'"));
    EXPECT_THAT(refusal({"a.gguf", "--ctx-sice", "1"}), HasSubstr("'--ctx-size'"));
    EXPECT_THAT(refusal({"a.gguf", "b.gguf"}), HasSubstr("b.gguf"));
    const TemporaryFolder folder;
    const std::string file = folder.write("serve.ini", "model = a.gguf\nprot = 1\n");
    EXPECT_THAT(refusal({"--config", file}), HasSubstr("serve.ini, line 2"));
    EXPECT_THAT(refusal({"--config", "/none"}), HasSubstr("/none"));
    for (const char* line : {"model", "model =", "ctx-size", "models-dir="}) {
        const std::string lacking = folder.write("lacking.ini", std::string("port = 1\n") + line + "\n");
        EXPECT_THAT(refusal({"--config", lacking}), HasSubstr("lacking.ini, line 2: "));
        EXPECT_THAT(refusal({"--config", lacking}), HasSubstr("needs a value: "));
    }
    const std::string sections = folder.write("two.ini", "model = a.gguf\n[b]\nport = 1\n");
    EXPECT_THAT(refusal({"--config", sections}), HasSubstr("two.ini has the section [b]"));
}

TEST(ServeOptions, WithWrongValuesAreErrorsThatNameThem) {
    EXPECT_THAT(refusal({"a.gguf", "--port", "x"}), HasSubstr("--port"));
    EXPECT_THAT(refusal({"a.gguf", "--port", "65536"}), HasSubstr("65536"));
    EXPECT_THAT(refusal({"a.gguf", "--port"}), HasSubstr("needs a value"));
    EXPECT_THAT(refusal({"a.gguf", "--temp", "warm"}), HasSubstr("warm"));
    EXPECT_THAT(refusal({"a.gguf", "--metrics=1"}), HasSubstr("no value"));
    EXPECT_THAT(refusal({"a.gguf", "-c", "-512"}), HasSubstr("-512"));
    EXPECT_THAT(refusal({"a.gguf", "-ts", "3,x"}), HasSubstr("'x'"));
    EXPECT_THAT(refusal({"a.gguf", "--rpc", "host"}), HasSubstr("host:port"));
    EXPECT_THAT(refusal({"a.gguf", "-fitt", "1,2"}), HasSubstr("1,2"));
    EXPECT_THAT(refusal({"a.gguf", "-C", "xyz"}), HasSubstr("xyz"));
    EXPECT_THAT(refusal({"a.gguf", "-Cr", "3-1"}), HasSubstr("-Cr"));
    EXPECT_THAT(refusal({"a.gguf", "-l", "5+inf"}), HasSubstr("5+inf"));
    EXPECT_THAT(refusal({"a.gguf", "--spec-type", "draft-mtp"}), HasSubstr("ngram-simple"));
    EXPECT_THAT(refusal({"a.gguf"}, {{"LLAMA_ARG_AGENT", "perhaps"}}), HasSubstr("LLAMA_ARG_AGENT"));
    EXPECT_THAT(refusal({"a.gguf", "--api-key-file", "/none"}), HasSubstr("/none"));
    EXPECT_THAT(refusal({"a.gguf", "--slot-save-path", "/none"}), HasSubstr("/none"));
    EXPECT_THAT(refusal({"a.gguf"}, {{"LLAMA_ARG_ENDPOINT_METRICS", "maybe"}}),
                HasSubstr("ENDPOINT_METRICS"));
}

TEST(ServeOptions, OfLlamaServerThatCannotBeHadSayWhy) {
    EXPECT_THAT(refusal({"-hf", "a/b"}), HasSubstr("downloads nothing"));
    EXPECT_THAT(refusal({"a.gguf", "--media-path", "x"}), HasSubstr("images come with them"));
    EXPECT_EQ(read_well({"a.gguf", "--cont-batching", "--no-warmup", "--threads-http", "4"}).model, "a.gguf");
}

TEST(ServeOptions, TakeKeysFromAFileWithComments) {
    const TemporaryFolder folder;
    const std::string file = folder.write("keys", "# ours\none\r\n\ntwo \n");
    EXPECT_THAT(read_well({"a.gguf", "--api-key", "zero,null", "--api-key-file", file}).keys,
                ElementsAre("zero", "null", "one", "two"));
}

TEST(ServeOptions, AreEachCalledOnlyOnce) {
    std::set<std::string_view> names;
    for (const Flag& flag : flags())
        for (std::string_view list : {flag.names, flag.negative})
            while (!list.empty()) {
                const std::string_view name = list.substr(0, list.find(' '));
                EXPECT_TRUE(names.insert(name).second) << name;
                list.remove_prefix(std::min(list.size(), name.size() + 1));
            }
}

TEST(ServeOptions, ThatSetParametersNameOnesThatTheEngineHas) {
    for (const Flag& flag : flags()) {
        if (flag.parameter.empty()) continue;
        llm::Settings strict;
        strict.strict = true;
        llm::Warnings notes;
        // A value of any wrong type shows that the name is known; of an unknown one the error says so.
        const Parameters given = {{std::string(flag.parameter), std::vector<ParameterValue>{Parameters()}}};
        const auto read = llm::with_parameters(strict, given, llm::Level::service, notes);
        const std::string message = read.ok() ? "" : read.error().message;
        EXPECT_THAT(message, testing::Not(HasSubstr("is not known"))) << flag.names;
    }
}

}  // namespace
}  // namespace headrace::serve
