#include "doors/serve/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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
    EXPECT_EQ(number(read_well({"a.gguf", "-c", "512", "-np", "2"}), "n_ctx_per_request"), 256);
    EXPECT_EQ(read_well({"a.gguf", "-c", "512", "-np", "2", "-kvu"}).parameters.find("n_ctx_per_request"),
              nullptr);
    EXPECT_EQ(read_well({"a.gguf", "-c", "512"}).parameters.find("n_ctx_per_request"), nullptr);
    EXPECT_EQ(number(read_well({"a.gguf", "--parallel", "3"}), "n_parallel"), 3);
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

TEST(ServeOptions, OfArgumentsComeBeforeTheEnvironmentAndAFile) {
    const TemporaryFolder folder;
    const std::string file =
        folder.write("serve.ini",
                     "# a comment\n[section]\nport = 1\nctx-size = 100\nmodel = file.gguf\n"
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
}

TEST(ServeOptions, WithWrongValuesAreErrorsThatNameThem) {
    EXPECT_THAT(refusal({"a.gguf", "--port", "x"}), HasSubstr("--port"));
    EXPECT_THAT(refusal({"a.gguf", "--port", "65536"}), HasSubstr("65536"));
    EXPECT_THAT(refusal({"a.gguf", "--port"}), HasSubstr("needs a value"));
    EXPECT_THAT(refusal({"a.gguf", "--temp", "warm"}), HasSubstr("warm"));
    EXPECT_THAT(refusal({"a.gguf", "--metrics=1"}), HasSubstr("no value"));
    EXPECT_THAT(refusal({"a.gguf", "--api-key-file", "/none"}), HasSubstr("/none"));
    EXPECT_THAT(refusal({"a.gguf", "--slot-save-path", "/none"}), HasSubstr("/none"));
    EXPECT_THAT(refusal({"a.gguf"}, {{"LLAMA_ARG_ENDPOINT_METRICS", "maybe"}}),
                HasSubstr("ENDPOINT_METRICS"));
}

TEST(ServeOptions, OfLlamaServerThatCannotBeHadSayWhy) {
    EXPECT_THAT(refusal({"-hf", "a/b"}), HasSubstr("downloads nothing"));
    EXPECT_THAT(refusal({"a.gguf", "--mmproj", "x"}), HasSubstr("images"));
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
        llm::Notes notes;
        // A value of any wrong type shows that the name is known; of an unknown one the error says so.
        const Parameters given = {{std::string(flag.parameter), std::vector<ParameterValue>{Parameters()}}};
        const auto read = llm::with_parameters(strict, given, llm::Level::service, notes);
        const std::string message = read.ok() ? "" : read.error().message;
        EXPECT_THAT(message, testing::Not(HasSubstr("is not known"))) << flag.names;
    }
}

}  // namespace
}  // namespace headrace::serve
