// Values that are more than a number or a text, and damaged texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "llm/parameters/json.h"
#include "llm/parameters/parameters.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

Settings read(std::string_view json, Level level = Level::request, Warnings* warnings = nullptr,
              const Settings& base = {}) {
    Warnings own;
    auto result = with_parameters(base, json, level, warnings ? *warnings : own);
    EXPECT_TRUE(result.ok()) << json << ": " << (result.ok() ? "" : result.error().message);
    return result.ok() ? std::move(result).value() : Settings{};
}

std::string value_error(std::string_view json, Level level = Level::request) {
    Warnings warnings;
    const auto result = with_parameters({}, json, level, warnings);
    return result.ok() ? "no error" : result.error().message;
}

TEST(ParameterValues, NameTheParameterTheValueAndWhatWouldBeRight) {
    EXPECT_EQ(value_error(R"({"temperature": -2.5})"),
              "'temperature' is -2.5; it must be a number of at least 0");
    EXPECT_EQ(value_error(R"({"sampling": {"top-p": -0.1}})"),
              "'sampling.top-p' is -0.1; it must be a number from 0 to 1");
    EXPECT_EQ(value_error(R"({"penalty_last_n": -2})"),
              "'penalty_last_n' is -2; it must be an integer from -1 to 2147483647");
    EXPECT_EQ(value_error(R"({"top_k": true})"),
              "'top_k' is true; it must be an integer from 0 to 2147483647");
    EXPECT_EQ(value_error(R"({"reasoning_format": "loud"})"),
              "'reasoning_format' is \"loud\"; it must be one of none, auto, deepseek, deepseek-legacy");
    EXPECT_THAT(value_error(R"({"system_prompt": "a\u0000b"})"), HasSubstr("without zero bytes"));
    EXPECT_LT(value_error(R"({"temp": ")" + std::string(5000, 'x') + "\"}").size(), 150u);
}

TEST(ParameterValues, NoteWhatIsClamped) {
    Warnings warnings;
    EXPECT_EQ(read(R"({"top_k": -1})", Level::request, &warnings).request.sampling.top_k, 0);
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0].parameter, "top_k");
    EXPECT_EQ(warnings[0].message, "'top_k' is -1; 0 is used, as it must be an integer from 0 to 2147483647");
}

TEST(ParameterValues, AQueueHasRoomForTheRequestThatIsNext) {
    EXPECT_EQ(read(R"({"max_waiting": 0})", Level::model).queue.max_waiting, 1);
}

TEST(ParameterValues, ATimeoutOfZeroIsNotClamped) {
    Warnings warnings;
    EXPECT_EQ(read(R"({"idle_timeout_ms": 0})", Level::model, &warnings).session.idle_timeout_ms, 0);
    EXPECT_THAT(warnings, IsEmpty());
    EXPECT_EQ(read(R"({"idle_timeout_ms": 99})", Level::model, &warnings).session.idle_timeout_ms, 100);
    EXPECT_EQ(warnings.size(), 1u);
}

TEST(ParameterValues, TakeWordsForNumbersAndSwitches) {
    EXPECT_EQ(read(R"({"n_gpu_layers": "auto"})", Level::model).model.n_gpu_layers, -1);
    EXPECT_EQ(read(R"({"n_gpu_layers": "all"})", Level::model).model.n_gpu_layers, 9999);
    EXPECT_THAT(value_error(R"({"n_gpu_layers": "most"})", Level::model),
                HasSubstr("or \"auto\" or \"all\""));
    EXPECT_EQ(read(R"({"flash_attn": true})", Level::model).context.flash_attn, "on");
    EXPECT_EQ(read(R"({"replace": false})", Level::model).replace, "false");
    EXPECT_EQ(read(R"({"attention": "non_causal"})", Level::model).context.attention, "non-causal");
    EXPECT_EQ(read(R"({"type_k": "Q8_0"})", Level::model).context.type_k, "q8_0");
    EXPECT_EQ(read(R"({"logging": {"level": "fatal"}})", Level::model).log.level, "error");
    EXPECT_EQ(read(R"({"enable-log": true, "enable-debug-log": true})", Level::model).log.level, "debug");
    EXPECT_EQ(read(R"({"use_mmap": true, "use_mlock": true})", Level::model).model.load_mode, "mmap+mlock");
    EXPECT_EQ(read(R"({"rope_scale": 4})", Level::model).context.rope_freq_scale, 0.25f);
}

TEST(ParameterValues, TheSeedMinusOneIsRandom) {
    EXPECT_EQ(read(R"({"seed": -1})").request.sampling.seed, kRandomSeed);
    EXPECT_EQ(read(R"({"seed": 4294967295})").request.sampling.seed, kRandomSeed);
    EXPECT_THAT(value_error(R"({"seed": -2})"), HasSubstr("from -1 to 4294967295"));
}

TEST(ParameterValues, PrioritiesHaveNamesAndNumbers) {
    EXPECT_EQ(read(R"({"priority": "urgent"})").request.priority, Priority::urgent);
    EXPECT_EQ(read(R"({"priority": "LOW"})").request.priority, Priority::low);
    EXPECT_EQ(read(R"({"priority": 2})").request.priority, Priority::high);
    for (const char* json : {R"({"priority": 4})", R"({"priority": -1})", R"({"priority": true})",
                             R"({"priority": 1.5})", R"({"priority": "max"})"})
        EXPECT_THAT(value_error(json), HasSubstr("one of low, normal, high, urgent, or 0 to 3"));
}

TEST(ParameterValues, SamplersHaveNamesAndLetters) {
    const std::vector<SamplerKind> expected = {SamplerKind::top_k, SamplerKind::typical_p,
                                               SamplerKind::temperature};
    for (const char* json : {R"({"samplers": ["top_k", "typical_p", "temp"]})",
                             R"({"samplers": "top-k;typ_p;temperature"})", R"({"samplers": "kyt"})"})
        EXPECT_EQ(read(json).request.sampling.samplers, expected) << json;
    EXPECT_THAT(read(R"({"samplers": []})").request.sampling.samplers, IsEmpty());
    EXPECT_THAT(read(R"({"samplers": "top_k"})").request.sampling.samplers, ElementsAre(SamplerKind::top_k));
}

TEST(ParameterValues, UnknownSamplersAreLeftOutWithANote) {
    Warnings warnings;
    EXPECT_THAT(
        read(R"({"samplers": ["magic", "top_k"]})", Level::request, &warnings).request.sampling.samplers,
        ElementsAre(SamplerKind::top_k));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_EQ(warnings[0].message, "'samplers' names \"magic\", which is no sampler; it is left out");
    EXPECT_THAT(value_error(R"({"samplers": [1]})"), HasSubstr("must be a list of samplers' names"));
}

TEST(ParameterValues, LogitBiasesAreListsOrObjects) {
    for (const char* json :
         {R"({"logit_bias": [[15, -1], ["no", false]]})", R"({"logit_bias": {"15": -1, "no": false}})"}) {
        const RequestSettings request = read(json).request;
        ASSERT_EQ(request.sampling.logit_bias.size(), 1u);
        EXPECT_EQ(request.sampling.logit_bias[0].token, 15);
        EXPECT_EQ(request.sampling.logit_bias[0].bias, -1);
        EXPECT_THAT(request.sampling.logit_bias_text, ElementsAre(Pair("no", -INFINITY)));
    }
    EXPECT_THAT(value_error(R"({"logit_bias": [[15, -1], [2]]})"),
                HasSubstr("'logit_bias[1]' is [2]; it must be a pair"));
    EXPECT_THAT(value_error(R"({"logit_bias": [[-1, 0]]})"), HasSubstr("a token id of at least 0 or a text"));
    EXPECT_THAT(value_error(R"({"logit_bias": [[1, true]]})"), HasSubstr("a number or false"));
    EXPECT_THAT(value_error(R"({"logit_bias": {"-4": 1}})"), HasSubstr("a token id of at least 0"));
}

TEST(ParameterValues, LogprobsAreANumberOrASwitch) {
    EXPECT_EQ(read(R"({"logprobs": 3})").request.sampling.n_probs, 3);
    EXPECT_EQ(read(R"({"logprobs": true})").request.sampling.n_probs, 20);
    EXPECT_EQ(read(R"({"logprobs": true, "top_logprobs": 5})").request.sampling.n_probs, 5);
    EXPECT_EQ(read(R"({"logprobs": false, "top_logprobs": 5})").request.sampling.n_probs, 0);
}

TEST(ParameterValues, SchemasAreObjectsTextsOrResponseFormats) {
    const std::string schema = R"({"type":"integer"})";
    for (const char* json :
         {R"({"json_schema": {"type": "integer"}})", R"({"json-schema": "{\"type\": \"integer\"}"})",
          R"({"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "integer"}}}})",
          R"({"response_format": {"type": "json_schema", "schema": {"type": "integer"}}})"})
        EXPECT_EQ(read(json).request.json_schema, schema) << json;
    EXPECT_EQ(read(R"({"json_schema": {}})").request.json_schema, R"({"type":"object"})");
    EXPECT_EQ(read(R"({"response_format": {"type": "json_object"}})").request.json_schema,
              R"({"type":"object"})");
    EXPECT_EQ(read(R"({"response_format": {"type": "text"}})").request.json_schema, "");
    EXPECT_THAT(value_error(R"({"json_schema": "{"})"),
                HasSubstr("'json_schema' is a text that is no JSON: line 1"));
    for (const char* wrong : {R"({"type": "xml"})", R"({"type": "json_schema"})",
                              R"({"type": "json_schema", "json_schema": 1, "schema": {}})"})
        EXPECT_THAT(value_error(R"({"response_format": )" + std::string(wrong) + "}"),
                    HasSubstr("'response_format' is"))
            << wrong;
    EXPECT_THAT(value_error(R"({"json_schema": ")" + std::string(100, '[') + "\"}"),
                HasSubstr("nested deeper than 64"));
}

TEST(ParameterValues, SchemasKeepTheOrderOfTheirProperties) {
    const std::string schema = R"({"properties":{"z":{},"a":{},"m":{}}})";
    EXPECT_EQ(read("{\"json_schema\": " + schema + "}").request.json_schema, schema);
}

TEST(ParameterValues, TriggersAreTextsOrObjects) {
    const auto triggers = read(R"({"grammar_triggers": ["<a>", {"type": "pattern", "value": "b+"},
        {"type": 0, "token": 7, "value": "<c>"}, {"type": 3, "value": "d"}]})")
                              .request.sampling.grammar_triggers;
    ASSERT_EQ(triggers.size(), 4u);
    EXPECT_EQ(triggers[0].type, GrammarTrigger::Type::word);
    EXPECT_EQ(triggers[0].value, "<a>");
    EXPECT_EQ(triggers[1].type, GrammarTrigger::Type::pattern);
    EXPECT_EQ(triggers[2].token, 7);
    EXPECT_EQ(triggers[3].type, GrammarTrigger::Type::pattern_full);
    for (const char* item :
         {"{}", "\"\"", R"({"type": "verb", "value": "x"})", R"({"type": "token", "value": "x"})",
          R"({"type": 4, "value": "x"})", R"({"value": "x", "token": -1})"})
        EXPECT_THAT(value_error(fmt::format(R"({{"grammar_triggers": ["ok", {}]}})", item)),
                    HasSubstr("'grammar_triggers[1]' is"))
            << item;
}

TEST(ParameterValues, AdaptersAreFilesForModelsAndPositionsForRequests) {
    const Settings model = read(R"({"lora": [{"path": "a.gguf", "scale": 0.5}, "b.gguf"]})", Level::model);
    EXPECT_THAT(model.model.lora, ElementsAre(Pair("a.gguf", 0.5f), Pair("b.gguf", 1.0f)));
    const Settings request = read(R"({"lora": [{"id": 1, "scale": 0}]})", Level::request, nullptr, model);
    EXPECT_THAT(request.request.lora, ElementsAre(Pair(1, 0.0f)));
    EXPECT_EQ(request.model.lora.size(), 2u);
    EXPECT_THAT(value_error(R"({"lora": ["/etc/passwd"]})"),
                HasSubstr("files are given where the model is loaded"));
    EXPECT_THAT(value_error(R"({"lora": [{"id": 1, "path": "x"}]})", Level::model),
                HasSubstr("'lora[0]' is"));
}

TEST(ParameterValues, TemplateArgumentsAreJson) {
    const RequestSettings request =
        read(R"({"chat_template_kwargs": {"enable_thinking": false, "n": 3}, "reasoning_effort": "low"})")
            .request;
    EXPECT_FALSE(request.enable_thinking);
    EXPECT_THAT(request.template_kwargs,
                testing::UnorderedElementsAre(Pair("enable_thinking", "false"), Pair("n", "3"),
                                              Pair("reasoning_effort", "\"low\"")));
    EXPECT_FALSE(read(R"({"reasoning_effort": "none"})").request.enable_thinking);
    EXPECT_THAT(value_error(R"({"chat_template_kwargs": {"enable_thinking": "no"}})"),
                HasSubstr("true or false"));
}

TEST(ParameterValues, TemplateArgumentsOfARequestStandOverTheModels) {
    const Settings model =
        read(R"({"chat_template_kwargs": {"n": 3, "tone": "dry"}, "reasoning_effort": "low"})");
    const Settings request = read(R"({"chat_template_kwargs": {"n": 4}})", Level::request, nullptr, model);
    EXPECT_THAT(request.request.template_kwargs,
                testing::UnorderedElementsAre(Pair("n", "4"), Pair("tone", "\"dry\""),
                                              Pair("reasoning_effort", "\"low\"")));
}

TEST(ParameterValues, OfTemplatesAreLimitedInNumber) {
    Json kwargs = Json::object(), messages = Json::array();
    for (int i = 0; i < 256; ++i) kwargs[std::to_string(i)] = i;
    for (int i = 0; i < 10'000; ++i) messages.push_back({{"role", "user"}, {"content", ""}});
    const auto text = [&] {
        return Json{{"chat_template_kwargs", kwargs}, {"previous_messages", messages}}.dump();
    };
    EXPECT_EQ(read(text()).request.template_kwargs.size(), 256u);
    messages.push_back({{"role", "user"}, {"content", ""}});
    EXPECT_THAT(value_error(text()), HasSubstr("has 10001 messages; at most 10000"));
    messages.clear();
    kwargs["more"] = true;
    EXPECT_THAT(value_error(text()), HasSubstr("has 257 values; at most 256"));
}

TEST(ParameterValues, KvOverridesHaveATypeAndAValue) {
    for (const char* text : {"x", "x=1", "=int:1", "x=byte:1", "x=int:"})
        EXPECT_THAT(value_error(fmt::format(R"({{"kv_overrides": ["{}"]}})", text), Level::model),
                    HasSubstr("it must be"))
            << text;
    EXPECT_THAT(read(R"({"kv_overrides": "a.b=str:c:d=e"})", Level::model).model.kv_overrides,
                ElementsAre("a.b=str:c:d=e"));
}

TEST(ParameterValues, ListsOfTextsAreLimited) {
    EXPECT_THAT(read(R"({"stop": ["", "a", ""]})").request.stopping.strings, ElementsAre("a"));
    EXPECT_THAT(value_error(R"({"stop": ["a", 1]})"),
                HasSubstr("'stop' is 1; it must be a text in each place"));
    std::string many = "{\"stop\": [\"a\"";
    for (int i = 0; i < 256; ++i) many += ",\"a\"";
    EXPECT_EQ(value_error(many + "]}"), "'stop' has 257 texts; at most 256 are allowed");
    EXPECT_EQ(value_error(R"({"stop": ")" + std::string(4097, 'x') + "\"}"),
              "'stop' has a text of 4097 bytes; at most 4096 are allowed");
    EXPECT_THAT(value_error(R"({"dry_sequence_breakers": []})"), HasSubstr("at least one text"));
}

TEST(ParameterValues, SemanticStoppingHasASwitch) {
    EXPECT_FLOAT_EQ(read(R"({"semantic_stopping": true})").request.stopping.similarity_threshold, 0.9f);
    EXPECT_FLOAT_EQ(read(R"({"semantic_stopping": {"enabled": true, "threshold": 0.7}})")
                        .request.stopping.similarity_threshold,
                    0.7f);
    EXPECT_EQ(read(R"({"semantic_stopping": {"enabled": false, "threshold": 0.7}})")
                  .request.stopping.similarity_threshold,
              0);
}

TEST(ParameterJson, TellsWhereATextIsDamaged) {
    const std::pair<std::string, std::string_view> cases[] = {
        {"{\"temp\": 1", "line 1, column 11: syntax error"},
        {"{\n  \"temp\": NaN}", "line 2, column 11: syntax error"},
        {"{\"temp\": Infinity}", "line 1, column 10"},
        {"{\"temp\": 1e999}", "line 1, column 14: number overflow"},
        {"{\"a\": 1,\n \"temp\": 1, \"temp\": 2}", "line 2, column 18: 'temp' is given twice in one object"},
        {"{\"temp\": \"\xff\"}", "line 1, column 11: byte 0xff is no UTF-8"},
        {"{\"temp\": \"\\ud800\"}", "line 1, column"},
        {"{\"temp\": 01}", "line 1, column 11"},
        {"{\"temp\": 1} x", "line 1, column 13"},
        {"{'temp': 1}", "line 1, column 2"},
        {std::string("{\"t\0p\": 1}", 10), "line 1, column 4"},
        {std::string(65, '['), "line 1, column 65: arrays and objects are nested deeper than 64"},
        {"{\"a\":" + std::string(1 << 20, '['), "line 1, column 69: arrays and objects are nested deeper"},
        {" [1]", "of the type array (line 1, column 2); they must be a JSON object"},
        {"null", "of the type null (line 1, column 1)"},
        {"7", "of the type number"},
        {std::string(kMaxJsonBytes + 1, ' ') + "{}", "bytes are given; at most 16777216 are read"},
    };
    for (const auto& [json, expected] : cases)
        EXPECT_THAT(value_error(json), HasSubstr(std::string(expected))) << json.substr(0, 80);
}

TEST(ParameterJson, IgnoresTheZerosThatCCallersCount) {
    EXPECT_EQ(read(std::string_view("{\"top_k\": 3}\0\0", 14)).request.sampling.top_k, 3);
    EXPECT_EQ(read(std::string_view("\0", 1)).request.sampling.top_k, SamplingSettings().top_k);
}

TEST(ParameterJson, HoldsTheDeepestNestingThatIsAllowed) {
    Warnings warnings;
    const std::string json = "{\"x\":" + std::string(63, '[') + std::string(63, ']') + "}";
    EXPECT_TRUE(with_parameters({}, json, Level::request, warnings).ok());
    EXPECT_EQ(warnings.size(), 1u);
}

/// Every row's value.
std::string fingerprint(Settings settings) {
    std::string text;
    for (const Row* row : parameter_rows()) text += value_of(*row, settings).dump() + "\n";
    return text;
}

/// An object of a few rows' examples, some nested.
std::string some_parameters(std::mt19937& random) {
    const auto& rows = parameter_rows();
    std::string text = "{\"sampling\": {\"dynatemp\": {\"range\": 0.1}}";
    for (int i = 0; i < 6; ++i)
        if (const Row& row = *rows[random() % rows.size()];
            !row.ignored() && text.find(row.path) == text.npos)
            text += fmt::format(", \"{}\": {}", row.path, row.example);
    return text + "}";
}

TEST(ParameterJson, SurvivesDamagedTextsAndKeepsTheBase) {
    Settings base;
    base.request.sampling.temp = 0.125f;
    base.request.stopping.strings = {"base"};
    const std::string before = fingerprint(base);

    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::string_view pieces[] = {"{",       "}",    "[",     "]",       "\"",
                                       ",",       ":",    "1e400", "-1",      "1.9",
                                       "true",    "null", "\xff",  "\\u0000", "99999999999999999999",
                                       "{\"a\":", ".",    "-",     "[[[[",    "\"\""};
    int accepted = 0, refused = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string text = some_parameters(random);
        for (std::size_t change = 0; change <= below(4); ++change) {
            const std::size_t at = below(text.size());
            switch (below(4)) {
                case 0: text[at] = static_cast<char>(below(256)); break;
                case 1: text.erase(at, 1 + below(20)); break;
                case 2: text.insert(at, pieces[below(std::size(pieces))]); break;
                default: text.insert(at, text.substr(below(text.size()), below(40))); break;
            }
        }
        Warnings warnings;
        const auto result = with_parameters(base, text, static_cast<Level>(below(4)), warnings);
        ++(result.ok() ? accepted : refused);
        if (result.ok()) continue;
        ASSERT_FALSE(result.error().message.empty());
        ASSERT_TRUE(warnings.empty());
    }
    EXPECT_GT(accepted, 50);
    EXPECT_GT(refused, 1000);
    EXPECT_EQ(fingerprint(base), before);
}

}  // namespace
}  // namespace headrace::llm
