#include "llm/parameters/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llm/parameters/names.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> messages(const Warnings& warnings) {
    std::vector<std::string> list;
    for (const Warning& warning : warnings) list.push_back(warning.message);
    return list;
}

/// The settings and the warnings of a text that is expected to be right.
struct ReadLevel {
    Warnings warnings;
    Settings settings;

    explicit ReadLevel(std::string_view json, Level level = Level::service, const Settings& base = {}) {
        auto result = with_parameters(base, json, level, warnings);
        EXPECT_TRUE(result.ok()) << json << ": " << (result.ok() ? "" : result.error().message);
        if (result.ok()) settings = std::move(result).value();
    }
};

/// The message of a text that is expected to be wrong.
std::string level_error(std::string_view json, Level level = Level::service, const Settings& base = {}) {
    Warnings warnings;
    const auto result = with_parameters(base, json, level, warnings);
    if (result.ok()) return "no error";
    EXPECT_EQ(result.error().code, Code::invalid_argument);
    EXPECT_THAT(warnings, IsEmpty());
    return result.error().message;
}

TEST(Parameters, AreUnchangedByNothing) {
    Settings base;
    base.request.sampling.temp = 0.25f;
    for (std::string_view json :
         {"", " \n", "{}", "{}\0", R"({"temp": null, "sampling": {"top_p": null}, "x": null})"}) {
        const ReadLevel read(json, Level::request, base);
        EXPECT_EQ(read.settings.request.sampling.temp, 0.25f) << json;
        EXPECT_THAT(read.warnings, IsEmpty()) << json;
    }
}

TEST(Parameters, AreTakenAsValuesLikeTheSameText) {
    const Parameters values = {{"temp", 0.7},
                               {"stop", std::vector<ParameterValue>{"a", "b"}},
                               {"sampling", Parameters{{"top-k", 3}}},
                               {"n_predict", std::int64_t{12}},
                               {"tempreature", 1},
                               {"ignore_eos", true},
                               {"top_p", nullptr}};
    const ReadLevel text(values.to_json(), Level::request);
    Warnings warnings;
    const auto read = with_parameters({}, values, Level::request, warnings);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_TRUE(read.value().request == text.settings.request);
    EXPECT_EQ(messages(warnings), messages(text.warnings));
    EXPECT_FALSE(read.value().request == RequestSettings());
}

TEST(Parameters, TakeTheSeedsFlatConfiguration) {
    const ReadLevel read(
        R"({"n_gpu_layers": 98, "ctx_size": 2048, "n_predict": 512, "batch_size": 512, "threads": 8,
                        "temp": 0.7, "top_p": 0.95, "repeat_penalty": 1.10})",
        Level::model);
    EXPECT_THAT(read.warnings, IsEmpty());
    EXPECT_EQ(read.settings.model.n_gpu_layers, 98);
    EXPECT_EQ(read.settings.context.n_ctx, 2048);
    EXPECT_EQ(read.settings.request.n_predict, 512);
    EXPECT_EQ(read.settings.context.n_batch, 512);
    EXPECT_EQ(read.settings.context.n_threads, 8);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.temp, 0.7f);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.top_p, 0.95f);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.penalty_repeat, 1.1f);
}

TEST(Parameters, TakeTheSeedsNestedConfiguration) {
    Settings base;
    base.cache.enable_prompt_cache = false;
    const ReadLevel read(R"({"sampling": {"dynatemp": {"range": 0.1, "exponent": 1.2}},
                        "memory_management": {"cache_policy": {"enable_prompt_cache": true, "retention_ms": 400}}})",
                         Level::model, base);
    EXPECT_THAT(read.warnings, IsEmpty());
    EXPECT_FLOAT_EQ(read.settings.request.sampling.dynatemp_range, 0.1f);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.dynatemp_exponent, 1.2f);
    EXPECT_TRUE(read.settings.cache.enable_prompt_cache);
    EXPECT_EQ(read.settings.cache.retention_ms, 400);
}

TEST(Parameters, TakeWhatGuestsOfWasmEdgeWrite) {
    const ReadLevel read(
        R"({"enable-log": false, "stream-stdout": true, "ctx-size": 1024, "n-predict": 12, "temp": 0.5,
                        "n-gpu-layers": 0, "batch-size": 64, "repeat-penalty": 1.2, "threads": 2, "embedding": true,
                        "reverse-prompt": "User:", "tensor-split": "3,1", "use-mmap": false})",
        Level::model);
    EXPECT_EQ(read.settings.log.level, "error");
    EXPECT_EQ(read.settings.context.n_ctx, 1024);
    EXPECT_EQ(read.settings.context.n_batch, 64);
    EXPECT_TRUE(read.settings.context.embeddings);
    EXPECT_THAT(read.settings.request.stopping.strings, ElementsAre("User:"));
    EXPECT_THAT(read.settings.model.tensor_split, ElementsAre(3, 1));
    EXPECT_EQ(read.settings.model.load_mode, "none");
    EXPECT_THAT(messages(read.warnings),
                testing::Contains(HasSubstr("'stream-stdout' has no effect: the call decides")));
}

TEST(Parameters, TakeThePublicImplementationsSections) {
    const ReadLevel read(
        R"({"backend": {"max_sessions": 7, "idle_timeout_ms": 100, "auto_cleanup_enabled": false,
                                    "max_concurrent": 2, "queue_size": 50, "default_task_timeout_ms": 30000},
                        "model": {"n_gpu_layers": 3, "threads": 2},
                        "stopping": {"max_tokens": 9, "stop": ["a"], "semantic_stopping": {"threshold": 0.8}},
                        "memory_policy": {"context_shifting": true, "n_keep_tokens": 5, "memory_pressure_threshold": 0.7},
                        "memory": {"enable_prompt_cache": false},
                        "logging": {"level": "none", "file": "x.log"}})");
    EXPECT_THAT(read.warnings, IsEmpty());
    EXPECT_EQ(read.settings.session.max_sessions, 7);
    EXPECT_EQ(read.settings.session.idle_timeout_ms, 100);
    EXPECT_FALSE(read.settings.session.auto_cleanup);
    EXPECT_EQ(read.settings.session.max_concurrent, 2);
    EXPECT_EQ(read.settings.queue.max_waiting, 50);
    EXPECT_EQ(read.settings.request.timeout_ms, 30000);
    EXPECT_EQ(read.settings.model.n_gpu_layers, 3);
    EXPECT_EQ(read.settings.request.n_predict, 9);
    EXPECT_FLOAT_EQ(read.settings.request.stopping.similarity_threshold, 0.8f);
    EXPECT_TRUE(read.settings.context.context_shift);
    EXPECT_EQ(read.settings.request.n_keep, 5);
    EXPECT_FALSE(read.settings.cache.enable_prompt_cache);
    EXPECT_EQ(read.settings.log.level, "none");
    EXPECT_EQ(read.settings.log.file, "x.log");
}

TEST(Parameters, InheritFromBuiltInToModelToSessionToRequest) {
    const ReadLevel model(R"({"temp": 0.1, "top_k": 5, "max_history": 3})", Level::model);
    const ReadLevel session(R"({"temp": 0.2, "top_p": 0.5})", Level::session, model.settings);
    const ReadLevel request(R"({"temp": 0.3})", Level::request, session.settings);
    const auto& sampling = request.settings.request.sampling;
    EXPECT_FLOAT_EQ(sampling.temp, 0.3f);
    EXPECT_FLOAT_EQ(sampling.top_p, 0.5f);
    EXPECT_EQ(sampling.top_k, 5);
    EXPECT_FLOAT_EQ(sampling.min_p, SamplingSettings().min_p);
    EXPECT_EQ(request.settings.session.max_history, 3);
    EXPECT_FLOAT_EQ(session.settings.request.sampling.temp, 0.2f);
}

TEST(Parameters, OfAnOuterLevelAreIgnoredWithANote) {
    const ReadLevel read(R"({"n_ctx": 9, "max_history": 7, "log_file": "/etc/passwd", "temp": 1})",
                         Level::request);
    EXPECT_EQ(read.settings.context.n_ctx, kUsualContext);
    EXPECT_TRUE(read.settings.log.file.empty());
    EXPECT_FLOAT_EQ(read.settings.request.sampling.temp, 1);
    EXPECT_THAT(messages(read.warnings),
                ElementsAre("'n_ctx' belongs into the model's configuration and is ignored here",
                            "'max_history' belongs into the session's configuration and is ignored here",
                            "'log_file' belongs into the service's configuration and is ignored here"));
}

TEST(Parameters, HaveDefaultsThatAHelpTextShows) {
    EXPECT_EQ(parameter_default("batch_size"), "2048");
    EXPECT_EQ(parameter_default("type_k"), "f16");
    EXPECT_EQ(parameter_default("swa_full"), "true");
    EXPECT_EQ(parameter_default("n_gpu_layers"), "auto");
    EXPECT_EQ(parameter_default("seed"), "-1");
    for (const char* none : {"samplers", "lora", "prompt", "no_such_parameter"})
        EXPECT_EQ(parameter_default(none), "") << none;
}

TEST(Parameters, SuggestTheNearestName) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {R"({"tmep": 1})", "'tmep' is not known; did you mean 'temp'?"},
        {R"({"sampling": {"dynatmp": {"range": 1}}})", "'sampling.dynatmp' is not known; did you mean"},
        {R"({"sampling": {"dynatemp": {"rnage": 1}}})", "did you mean 'sampling.dynatemp.range'?"},
        {R"({"sampling": {"top_q": 1}})", "did you mean 'sampling.top_"},
        {R"({"samplng": {"temp": 1}})", "'samplng' is not known; did you mean 'sampling'?"},
        {R"({"repeat-penlaty": 1})", "'repeat-penlaty' is not known; did you mean 'repeat_penalty'?"},
        {R"({"entirely_different": 1})", "'entirely_different' is not known"},
    };
    for (const auto& [json, expected] : cases) {
        const ReadLevel read(json, Level::request);
        EXPECT_THAT(messages(read.warnings), ElementsAre(HasSubstr(expected))) << json;
        EXPECT_FLOAT_EQ(read.settings.request.sampling.temp, SamplingSettings().temp);
    }
    const ReadLevel none(R"({"entirely_different": 1})");
    EXPECT_THAT(none.warnings[0].message, testing::Not(HasSubstr("did you mean")));
}

TEST(Parameters, AreNotSuggestedWhereTheyCannotBeSet) {
    EXPECT_THAT(ReadLevel(R"({"ctx_sise": 1})", Level::model).warnings[0].message, HasSubstr("'ctx_size'"));
    EXPECT_THAT(ReadLevel(R"({"ctx_sise": 1})", Level::request).warnings[0].message,
                testing::Not(HasSubstr("did you mean")));
}

TEST(Parameters, KeepTheFirstOfTwoNames) {
    const ReadLevel read(R"({"temperature": 0.4, "sampling": {"temp": 0.9}})", Level::request);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.temp, 0.4f);
    EXPECT_THAT(messages(read.warnings),
                ElementsAre("'sampling.temp' is ignored, as 'temperature' is the same parameter"));
}

TEST(Parameters, StrictRefusesWhatIsOtherwiseNoted) {
    EXPECT_THAT(level_error(R"({"strict": true, "tmep": 1})"), HasSubstr("did you mean 'temp'?"));
    EXPECT_THAT(level_error(R"({"temp": 2.5, "strict": true})"),
                HasSubstr("'temperature' is 2.5; it must be a number from 0 to 2"));
    EXPECT_THAT(ReadLevel(R"({"temp": 2.5})").warnings, IsEmpty());
    EXPECT_THAT(ReadLevel(R"({"temp": 2, "strict": true})").warnings, IsEmpty());
    EXPECT_THAT(level_error(R"({"min_p": 2, "strict": true})"), HasSubstr("'min_p' is 2; 1 is used"));
    EXPECT_THAT(level_error(R"({"strict": true, "n_ctx": 1})", Level::request),
                HasSubstr("model's configuration"));
    EXPECT_THAT(level_error(R"({"strict": true, "temp": 1, "temperature": 1})"),
                HasSubstr("the same parameter"));
    const ReadLevel model(R"({"strict": true, "stream": true, "type_v": "q8_0"})", Level::model);
    EXPECT_THAT(model.warnings, testing::SizeIs(2));  // no effect, and adjusted: no mistakes
    EXPECT_THAT(level_error(R"({"tmep": 1})", Level::request, model.settings), HasSubstr("strict"));
    EXPECT_THAT(ReadLevel(R"({"tmep": 1, "strict": false})", Level::request, model.settings).warnings,
                testing::SizeIs(1));
}

TEST(Parameters, AskForFewSuggestionsInAFloodOfUnknownKeys) {
    std::string json = "{";
    for (int i = 0; i < 5000; ++i) json += fmt::format("\"unknown_{}\": 0,", i);
    const ReadLevel read(json + "\"temp\": 1}", Level::request);
    EXPECT_FLOAT_EQ(read.settings.request.sampling.temp, 1);
    EXPECT_EQ(read.warnings.size(), 33u);
    EXPECT_EQ(read.warnings.back().message, "4968 more parameters are not known");
}

TEST(Parameters, DoNotSearchInKeysOfAMillionDots) {
    const ReadLevel read(
        "{\"" + std::string(1 << 20, '.') + "\": 1, \"" + std::string(1 << 20, 'a') + "\": {}}",
        Level::request);
    ASSERT_EQ(read.warnings.size(), 2u);
    for (const Warning& warning : read.warnings)
        EXPECT_LT(warning.parameter.size() + warning.message.size(), 200u);
}

TEST(ParameterNames, AreUnique) { EXPECT_THAT(ambiguous_names(), IsEmpty()); }

TEST(ParametersPage, ShowsEveryRowOnce) {
    const std::string page = parameters_page();
    for (const Row* row : parameter_rows()) {
        if (row->ignored()) continue;
        const std::string cell = fmt::format("| `{}` |", row->path);
        const std::size_t at = page.find(cell);
        EXPECT_NE(at, page.npos) << row->path;
        EXPECT_EQ(page.find(cell, at + 1), page.npos) << row->path;
    }
    EXPECT_THAT(
        page, HasSubstr("| `sampling.temp` | `temp`, `temperature` | a number of at least 0; else an error | "
                        "`0.8` | request |"));
    EXPECT_THAT(page, HasSubstr("\"min_p\",\"xtc\",\"temperature\"]` |"));
    EXPECT_THAT(page, HasSubstr("| `dry_sequence_breakers` | a text or a list of at least one |"));
    EXPECT_THAT(
        page,
        HasSubstr("| `scheduling.priority` | `priority` | one of low, normal, high, urgent, or 0 to 3 | "
                  "`\"normal\"` |"));
    EXPECT_THAT(page, HasSubstr("`stream`, `stream_stdout`"));
}

}  // namespace
}  // namespace headrace::llm
