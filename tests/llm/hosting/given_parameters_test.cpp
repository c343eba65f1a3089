// Configurations that hosts of other WASI-NN backends write, key by key, as they are read leniently.
#include "llm/hosting/given_parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kNothing = "";

/// A key inside a group, or, with an empty group, on its own.
struct Key {
    std::string_view group, name, value;
    std::string_view path;    ///< of the row that it sets; kNothing: it has no effect, and says so
    std::string_view result;  ///< what the row has then; empty: the value
};

constexpr Key kKeys[] = {
    {"model", "n_gpu_layers", "7", "model.n_gpu_layers"},
    {"model", "ctx_size", "2048", "context.n_ctx"},
    {"model", "n_ctx", "2048", "context.n_ctx"},
    {"model", "batch_size", "1024", "context.n_batch"},
    {"model", "threads", "3", "context.n_threads"},

    {"sampling", "temp", "0.5", "sampling.temp"},
    {"sampling", "temperature", "5.0", "sampling.temp"},
    {"sampling", "top_p", "0.5", "sampling.top_p"},
    {"sampling", "top_k", "5", "sampling.top_k"},
    {"sampling", "min_p", "0.5", "sampling.min_p"},
    {"sampling", "repeat_penalty", "1.5", "sampling.penalties.repeat"},
    {"sampling", "penalty_last_n", "32", "sampling.penalties.last_n"},
    {"sampling", "seed", "5", "sampling.seed"},

    {"stopping", "max_tokens", "9", "generation.n_predict"},
    {"stopping", "stop_sequences", R"(["a"])", "stopping.stop"},
    {"stopping", "max_time_ms", "900", "stopping.max_predict_ms"},
    {"stopping", "grammar_triggers", R"({"enabled": true, "patterns": ["^\\s*$", "a"]})",
     "stopping.trigger_patterns", R"(["^\\s*$", "a"])"},
    {"stopping", "timeout_config", R"({"enabled": false})", "stopping.time_limit.enabled", "false"},
    {"stopping", "timeout_config", R"({"max_inference_time_ms": 900})", "stopping.max_predict_ms", "900"},
    {"stopping", "timeout_config", R"({"adaptive_timeout": true})", "stopping.time_limit.adaptive", "true"},
    {"stopping", "timeout_config", R"({"min_timeout_ms": 70})", "stopping.time_limit.min_ms", "70"},
    {"stopping", "timeout_config", R"({"timeout_multiplier": 1.5})", "stopping.time_limit.multiplier", "1.5"},
    {"stopping", "semantic_stopping", R"({"enabled": true})", "stopping.semantic.threshold", "0.9"},
    {"stopping", "semantic_stopping", R"({"completion_confidence_threshold": 0.75})",
     "stopping.semantic.threshold", "0.75"},
    {"stopping", "semantic_stopping", R"({"repetition_detection": true})", "stopping.repetition.enabled",
     "true"},
    {"stopping", "semantic_stopping", R"({"max_repetition_count": 6})", "stopping.repetition.count", "6"},
    {"stopping", "token_filters", R"({"forbidden_tokens": ["a"]})", "generation.forbidden", R"(["a"])"},
    {"stopping", "token_filters", R"({"required_tokens": ["a"]})", "generation.required", R"(["a"])"},
    {"stopping", "token_filters", R"({"pattern_based_triggers": ["a*"]})", "stopping.filter_patterns",
     R"(["a*"])"},

    {"backend", "max_sessions", "7", "session.max_sessions"},
    {"backend", "max_concurrent", "7", "session.max_concurrent"},
    {"backend", "queue_size", "7", "queue.max_waiting"},
    {"backend", "queue_warning_threshold", "7", kNothing},
    {"backend", "queue_reject_threshold", "7", "queue.max_waiting"},
    {"backend", "default_task_timeout_ms", "700", "scheduling.timeout_ms"},
    {"backend", "priority_scheduling_enabled", "true", kNothing},
    {"backend", "fair_scheduling_enabled", "false", kNothing},
    {"backend", "auto_queue_cleanup", "true", kNothing},
    {"backend", "auto_cleanup", "false", "session.auto_cleanup"},
    {"backend", "auto_cleanup_enabled", "false", "session.auto_cleanup"},
    {"backend", "auto_cleanup_sessions", "false", "session.auto_cleanup"},
    {"backend", "idle_timeout_ms", "700", "session.idle_timeout_ms"},

    {"memory", "cache_prompt", "false", "cache.cache_prompt"},
    {"memory", "context_shifting", "true", "context_shift.enabled"},
    {"memory", "max_cache_tokens", "700", kNothing},
    {"memory_policy", "cache_strategy", R"("lru")", kNothing},
    {"memory_policy", "max_cache_tokens", "700", kNothing},

    {"performance", "batch_processing", "true", kNothing},

    {"logging", "level", R"("error")", "logging.level"},
    {"logging", "enable_debug", "true", "logging.level", R"("debug")"},
    {"logging", "timestamps", "true", kNothing},
    {"logging", "colors", "true", kNothing},
    {"logging", "file", R"("x.log")", "logging.file"},
};

const Row* row_of(std::string_view path) {
    for (const Row* row : parameter_rows())
        if (row->path == path) return row;
    return nullptr;
}

Settings lenient_settings() {
    Settings settings;
    settings.lenient = true;
    return settings;
}

/// The settings and the warnings of a text that is read leniently.
struct Read {
    Warnings warnings;
    Settings settings;

    explicit Read(std::string_view json, Level level = Level::service,
                  const Settings& base = lenient_settings()) {
        auto result = with_given(base, GivenParameters::from_json(json), level, warnings);
        EXPECT_TRUE(result.ok()) << json << ": " << (result.ok() ? "" : result.error().message);
        if (result.ok()) settings = std::move(result).value();
    }
    std::vector<std::string> messages() const {
        std::vector<std::string> list;
        for (const Warning& warning : warnings) list.push_back(warning.message);
        return list;
    }
};

class HostKey : public testing::TestWithParam<Key> {
protected:
    const Key& key = GetParam();

    std::vector<std::string> spellings() const {
        const std::string flat = fmt::format("{{\"{}\": {}}}", key.name, key.value);
        return {flat, fmt::format("{{\"{}\": {}}}", key.group, flat),
                fmt::format("{{\"{}.{}\": {}}}", key.group, key.name, key.value)};
    }
};

TEST_P(HostKey, TakesEffectOrSaysThatItHasNone) {
    for (const std::string& json : spellings()) {
        Read read(json);
        if (key.path == kNothing) {
            EXPECT_THAT(read.messages(), ElementsAre(HasSubstr("has no effect"))) << json;
            continue;
        }
        const Row* row = row_of(key.path);
        ASSERT_NE(row, nullptr) << key.path;
        const Json expected = Json::parse(key.result.empty() ? key.value : key.result);
        EXPECT_EQ(value_of(*row, read.settings), expected) << json;
        Settings untouched;
        EXPECT_NE(value_of(*row, untouched), expected) << "the example would show nothing";
        if (key.name != "queue_reject_threshold") {
            EXPECT_THAT(read.warnings, IsEmpty()) << json;
        }
    }
}

TEST_P(HostKey, IsTakenInEveryPlace) {
    const Row* row = key.path == kNothing ? nullptr : row_of(key.path);
    for (const Level level : {Level::model, Level::session, Level::request})
        for (const std::string& json : spellings()) {
            Read read(json, level);
            Settings untouched;
            if (row && row->level < level) {
                EXPECT_THAT(read.messages(), Contains(HasSubstr("belongs into the"))) << json;
                EXPECT_EQ(value_of(*row, read.settings), value_of(*row, untouched)) << json;
            } else if (row) {
                EXPECT_NE(value_of(*row, read.settings), value_of(*row, untouched)) << json;
            }
        }
}

TEST_P(HostKey, OfAnUnexpectedTypeIsLeftOut) {
    if (key.path == kNothing) return;
    const Row* row = row_of(key.path);
    const std::string json = fmt::format("{{\"{}\": {{\"{}\": [[[]]]}}}}", key.group, key.name);
    Read read(json);
    EXPECT_THAT(read.messages(), Contains(AnyOf(HasSubstr("it is left out"), HasSubstr("is not known"))))
        << json;
    Settings untouched;
    EXPECT_EQ(value_of(*row, read.settings), value_of(*row, untouched));
}

INSTANTIATE_TEST_SUITE_P(Keys, HostKey, testing::ValuesIn(kKeys), [](const auto& info) {
    std::string name = fmt::format("{}_{}_{}", info.index, info.param.group, info.param.name);
    return name;
});

class EveryNumber : public testing::TestWithParam<const Row*> {};

TEST_P(EveryNumber, BeyondItsRangeIsTakenAtItsEnd) {
    const Row& row = *GetParam();
    for (const auto& [text, below] : {std::pair("-1e300", true), std::pair("1e300", false)}) {
        const std::string json = fmt::format("{{\"{}\": {}}}", row.path, text);
        Read read(json, row.level);
        EXPECT_THAT(read.messages(), Contains(HasSubstr("is used, as it must be"))) << json;
        const auto value = value_of(row, read.settings).get<double>();
        const double end = below ? row.values.min : row.values.max;
        const bool follows_another = row.path == "context.n_parallel" || row.path == "context.n_ubatch" ||
                                     row.path == "sampling.seed" || row.path == "sampling.dry.base";
        if (std::isfinite(end) && !follows_another) {
            EXPECT_NEAR(value, end, std::abs(end) * 1e-6) << json;
        }
    }
}

TEST(LenientNumbers, ThatConfineGuestsAreRefusedBeyondTheirRange) {
    int limits = 0;
    for (const Row* row : parameter_rows()) {
        if (!row->is_number() || row->section() != "service") continue;
        ++limits;
        const std::string json = fmt::format("{{\"{}\": -1e300}}", row->path);
        Warnings warnings;
        const auto read =
            with_given(lenient_settings(), GivenParameters::from_json(json), row->level, warnings);
        ASSERT_FALSE(read.ok()) << json;
        EXPECT_THAT(read.error().message, HasSubstr("it must be")) << json;
    }
    EXPECT_GE(limits, 5);
}

INSTANTIATE_TEST_SUITE_P(Rows, EveryNumber, testing::ValuesIn([] {
                             std::vector<const Row*> rows;
                             for (const Row* row : parameter_rows())
                                 if (row->is_number() && row->section() != "service") rows.push_back(row);
                             return rows;
                         }()),
                         [](const auto& info) {
                             std::string name(info.param->path);
                             std::replace(name.begin(), name.end(), '.', '_');
                             return name;
                         });

TEST(HostForms, HaveNumbersOfOtherShapesAtTheirRangesEnds) {
    EXPECT_EQ(Read(R"({"logprobs": -3})").settings.request.sampling.n_probs, 0);
    EXPECT_EQ(Read(R"({"priority": 12})").settings.request.priority, Priority::urgent);
    EXPECT_EQ(Read(R"({"priority": -1})").settings.request.priority, Priority::low);
    EXPECT_FLOAT_EQ(Read(R"({"rope_scale": 0})").settings.context.rope_freq_scale, 1e6f);
    EXPECT_THAT(Read(R"({"tensor_split": [3, -1]})").settings.model.tensor_split, ElementsAre(3, 0));
}

TEST(HostForms, KeepATemperatureAsItIs) {
    for (const double temperature : {0.0, 2.0, 2.5, 5.0, 100.0}) {
        const Read read(fmt::format("{{\"temperature\": {}}}", temperature), Level::request);
        EXPECT_FLOAT_EQ(read.settings.request.sampling.temp, static_cast<float>(temperature));
        EXPECT_THAT(read.warnings, IsEmpty());
    }
}

TEST(HostForms, OfTextThatIsNoObjectChangeNothing) {
    Settings base = lenient_settings();
    base.request.sampling.temp = 0.25f;
    for (const std::string_view json : {"{", "[1]", "7", "{\"a\": 1, \"a\": 2}", "\xff", "nonsense"}) {
        const Read read(json, Level::model, base);
        EXPECT_EQ(read.settings.request.sampling.temp, 0.25f);
        EXPECT_THAT(read.messages(), ElementsAre(HasSubstr("; the defaults are used"))) << json;
    }
}

TEST(HostForms, SettleWhatExcludesEachOther) {
    const Read grammar(R"({"grammar": "root ::= \"a\"", "json_schema": {}})", Level::request);
    EXPECT_THAT(grammar.settings.request.json_schema, IsEmpty());
    EXPECT_THAT(grammar.messages(), ElementsAre(HasSubstr("the grammar is kept")));
    const Read lazy(R"({"grammar": "root ::= \"a\"", "grammar_lazy": true})", Level::request);
    EXPECT_FALSE(lazy.settings.request.grammar_lazy);
    const Read attention(R"({"type_v": "q8_0", "flash_attn": "off"})", Level::model);
    EXPECT_EQ(attention.settings.context.flash_attn, "on");
}

TEST(HostForms, MayBeTakenBackByLaterTexts) {
    const Read model(R"({"grammar_triggers": {"patterns": ["a"]},
                         "semantic_stopping": {"enabled": true, "repetition_detection": true}})",
                     Level::model);
    const Read request(R"({"grammar_triggers": {"enabled": false}, "semantic_stopping": {"enabled": false}})",
                       Level::request, model.settings);
    EXPECT_THAT(model.settings.request.stopping.trigger_patterns, ElementsAre("a"));
    EXPECT_TRUE(model.settings.request.stopping.detect_repetition);
    EXPECT_THAT(request.settings.request.stopping.trigger_patterns, IsEmpty());
    EXPECT_FALSE(request.settings.request.stopping.detect_repetition);
    EXPECT_EQ(request.settings.request.stopping.similarity_threshold, 0);
}

TEST(HostForms, LeaveAWindowForRepetitionsAlone) {
    const Read read(R"({"repetition_window": 64, "semantic_stopping": {"enabled": false}})");
    EXPECT_EQ(read.settings.request.stopping.repetition_window, 64);
}

TEST(HostForms, KeepUsablePatternsAndLeaveOutOthers) {
    const Read read(
        R"json({"stop_patterns": ["a*", "b"], "grammar_triggers": {"patterns": ["c*", "(?=x)", ""]},
                            "token_filters": {"pattern_based_triggers": ["[", "d"]}})json");
    const StoppingSettings& stopping = read.settings.request.stopping;
    EXPECT_THAT(stopping.patterns, ElementsAre("b"));
    EXPECT_THAT(stopping.trigger_patterns, ElementsAre("c*"));
    EXPECT_THAT(stopping.filter_patterns, ElementsAre("d"));
    EXPECT_EQ(read.warnings.size(), 3u);
    std::string many = R"({"trigger_patterns": ["a")";
    for (int i = 0; i < 99; ++i) many += ",\"a\"";
    EXPECT_EQ(Read(many + "]}").settings.request.stopping.trigger_patterns.size(), 64u);
}

TEST(HostForms, HaveAsManyPatternsAsOtherListsHaveTexts) {
    const auto triggers = [](int count) {
        std::string json = R"({"grammar_triggers": {"patterns": ["b")";
        for (int i = 1; i < count; ++i) json += ",\"(\"";
        return json + "]}}";
    };
    EXPECT_THAT(Read(triggers(256)).settings.request.stopping.trigger_patterns, ElementsAre("b"));
    const Read many(triggers(257));
    EXPECT_THAT(many.settings.request.stopping.trigger_patterns, IsEmpty());
    EXPECT_THAT(many.messages(), ElementsAre(HasSubstr("'grammar_triggers.patterns' has 257 texts")));
    std::string members = R"({"grammar_triggers": {"enabled": true)";
    for (int i = 0; i < 100; ++i) members += fmt::format(",\"a{}\": 1", i);
    EXPECT_THAT(Read(members + "}}").messages(), ElementsAre(HasSubstr("it must be {\"enabled\"")));
}

TEST(HostForms, SayWhatAGroupMustBe) {
    EXPECT_THAT(Read(R"({"sampling": [1], "stopping": {"timeout_config": true}})").messages(),
                ElementsAre(HasSubstr("'sampling' is [1]; it must be an object"),
                            HasSubstr("'stopping.timeout_config' is true; it must be an object")));
}

TEST(HostForms, LowerTheQueueToItsThreshold) {
    EXPECT_EQ(Read(R"({"queue_size": 50, "queue_reject_threshold": 40})").settings.queue.max_waiting, 40);
    EXPECT_EQ(Read(R"({"queue_size": 30, "queue_reject_threshold": 40})").settings.queue.max_waiting, 30);
}

TEST(HostForms, AreErrorsWhereTheyConfineGuestsOrTheTextIsStrict) {
    for (const char* json :
         {R"({"model_root": 7})", R"({"model_aliases": []})", R"({"guest_templates": "no"})",
          R"({"strict": true, "top_p": 7})", R"({"strict": true, "threads": "x"})"}) {
        Warnings warnings;
        EXPECT_FALSE(
            with_given(lenient_settings(), GivenParameters::from_json(json), Level::service, warnings).ok())
            << json;
        EXPECT_THAT(warnings, IsEmpty());
    }
    Settings strict = lenient_settings();
    strict.strict = true;
    Warnings warnings;
    EXPECT_FALSE(with_given(strict, GivenParameters::from_json("{"), Level::model, warnings).ok());
}

TEST(HostForms, AreOnlyTakenByLenientReaders) {
    for (const char* json :
         {R"({"grammar_triggers": {"patterns": ["a"]}})", R"({"temperature": -1})", R"({"max_tokens": -5})",
          R"({"threads": "x"})", "{", R"({"grammar": "a", "json_schema": {}})"}) {
        Warnings warnings;
        EXPECT_FALSE(with_given({}, GivenParameters::from_json(json), Level::service, warnings).ok()) << json;
    }
    Warnings warnings;
    const auto flat = with_given({}, GivenParameters::from_json(R"({"level": "debug", "file": "x"})"),
                                 Level::service, warnings);
    ASSERT_TRUE(flat.ok());
    EXPECT_EQ(flat.value().log.level, LogSettings().level);
    EXPECT_THAT(flat.value().log.file, IsEmpty());
    EXPECT_EQ(warnings.size(), 2u);
}

}  // namespace
}  // namespace headrace::llm
