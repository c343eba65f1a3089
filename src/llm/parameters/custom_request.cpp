#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "llm/checks/trigger_pattern.h"
#include "llm/parameters/custom.h"
#include "llm/parameters/json.h"
#include "llm/parameters/names.h"
#include "llm/parameters/schemas.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

constexpr double kMaxInt = std::numeric_limits<int>::max();

/// llama.cpp's names and letters.
struct SamplerName {
    SamplerKind kind;
    std::string_view name;
    char letter;
};
constexpr SamplerName kSamplerNames[] = {{SamplerKind::penalties, "penalties", 'e'},
                                         {SamplerKind::dry, "dry", 'd'},
                                         {SamplerKind::top_n_sigma, "top_n_sigma", 's'},
                                         {SamplerKind::top_k, "top_k", 'k'},
                                         {SamplerKind::typical_p, "typ_p", 'y'},
                                         {SamplerKind::top_p, "top_p", 'p'},
                                         {SamplerKind::min_p, "min_p", 'm'},
                                         {SamplerKind::xtc, "xtc", 'x'},
                                         {SamplerKind::temperature, "temperature", 't'},
                                         {SamplerKind::infill, "infill", 'i'},
                                         {SamplerKind::adaptive_p, "adaptive_p", 'a'}};

/// "Top-K", "top_k" and "topk" as one; llama.cpp knows some samplers by further names.
std::string plain_name(std::string_view name) {
    std::string text = key_parts(name)[0];
    std::erase(text, '_');
    if (text == "nucleus") return "topp";
    if (text == "temp") return "temperature";
    if (text == "typ" || text == "typical" || text == "typicalp") return "typp";
    return text;
}

std::optional<SamplerKind> sampler_named(std::string_view name) {
    for (const SamplerName& sampler : kSamplerNames)
        if (plain_name(name) == plain_name(sampler.name)) return sampler.kind;
    return std::nullopt;
}

std::optional<SamplerKind> sampler_of_letter(char letter) {
    for (const SamplerName& sampler : kSamplerNames)
        if (letter == sampler.letter) return sampler.kind;
    return std::nullopt;
}

/// A text holds names (";" between them) or a letter for each sampler.
Status read_samplers(ParameterContext& parameter, Settings& settings, const Json& value) {
    std::vector<SamplerKind> samplers;
    const auto add = [&](std::string_view name, std::optional<SamplerKind> found) {
        if (found)
            samplers.push_back(*found);
        else
            parameter.warn(false, fmt::format("'{}' names {}, which is no sampler; it is left out",
                                              parameter.key, shown(name)));
    };
    if (value.is_string()) {
        const std::string& text = value.get_ref<const std::string&>();
        if (text.find(';') != text.npos || sampler_named(text))
            for (std::string_view name : split(text, ';')) add(name, sampler_named(name));
        else
            for (const char& letter : text) add(std::string_view(&letter, 1), sampler_of_letter(letter));
    } else {
        if (!value.is_array()) return parameter.wrong(value, kSamplers.type);
        for (const Json& name : value) {
            if (!name.is_string()) return parameter.wrong(value, kSamplers.type);
            add(name.get_ref<const std::string&>(), sampler_named(name.get_ref<const std::string&>()));
        }
    }
    if (samplers.size() > 64) return parameter.wrong(value, "a list of at most 64 samplers");
    settings.request.sampling.samplers = std::move(samplers);
    return success();
}

Json write_samplers(const Settings& settings) {
    Json names = Json::array();
    for (SamplerKind kind : settings.request.sampling.samplers)
        for (const SamplerName& sampler : kSamplerNames)
            if (sampler.kind == kind) names.push_back(sampler.name);
    return names;
}

/// false forbids the token.
Result<float> read_bias(const ParameterContext& parameter, const Json& value) {
    if (value.is_boolean() && !value.get<bool>()) return -INFINITY;
    if (!value.is_number() || std::abs(value.get<double>()) > 1e30)
        return parameter.wrong(value, "a number or false, which forbids the token");
    return value.get<float>();
}

Status add_bias(const ParameterContext& parameter, RequestSettings& request, const Json& token,
                const Json& value) {
    HR_ASSIGN(const float bias, read_bias(parameter, value));
    if (token.is_string()) {
        request.sampling.logit_bias_text.emplace_back(token.get<std::string>(), bias);
        return success();
    }
    HR_ASSIGN(const std::int64_t id,
              read_integer(parameter, token, 0, kMaxInt, "a token id of at least 0 or a text"));
    request.sampling.logit_bias.push_back({static_cast<std::int32_t>(id), bias});
    return success();
}

/// [[token or text, number or false], ...] or {"token or text": number or false}.
Status read_logit_bias(ParameterContext& parameter, Settings& settings, const Json& value) {
    settings.request.sampling.logit_bias.clear();
    settings.request.sampling.logit_bias_text.clear();
    if (value.is_object()) {
        for (const auto& [token, bias] : value.items()) {
            std::int64_t id = 0;
            const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), id);
            const bool is_id = error == std::errc{} && end == token.data() + token.size();
            HR_TRY(add_bias(parameter, settings.request, is_id ? Json(id) : Json(token), bias));
        }
        return success();
    }
    if (!value.is_array()) return parameter.wrong(value, kLogitBias.type);
    for (std::size_t i = 0; i < value.size(); ++i) {
        ParameterContext entry = parameter;
        entry.key = fmt::format("{}[{}]", parameter.key, i);
        if (!value[i].is_array() || value[i].size() != 2)
            return entry.wrong(value[i], "a pair: a token or text, and a number or false");
        HR_TRY(add_bias(entry, settings.request, value[i][0], value[i][1]));
    }
    return success();
}

Json write_logit_bias(const Settings& settings) {
    const auto bias = [](float value) { return std::isinf(value) ? Json(false) : Json(value); };
    Json list = Json::array();
    for (const TokenBias& entry : settings.request.sampling.logit_bias)
        list.push_back(Json::array({entry.token, bias(entry.bias)}));
    for (const auto& [text, value] : settings.request.sampling.logit_bias_text)
        list.push_back(Json::array({text, bias(value)}));
    return list;
}

/// A number as n_probs, or the chat API's switch beside top_logprobs.
Status read_logprobs(ParameterContext& parameter, Settings& settings, const Json& value) {
    int& n_probs = settings.request.sampling.n_probs;
    if (value.is_boolean()) {
        constexpr int kChatDefault = 20;
        n_probs = !value.get<bool>() ? 0 : n_probs > 0 ? n_probs : kChatDefault;
        return success();
    }
    HR_ASSIGN(const double count, number_within(parameter, value, reject(0, kMaxInt), kLogprobs.type));
    if (std::trunc(count) != count) return parameter.wrong(value, kLogprobs.type);
    n_probs = static_cast<int>(count);
    return success();
}

/// is_strict: what cannot be kept to is an error.
Status store_schema(const ParameterContext& parameter, Settings& settings, const Json& value,
                    bool is_strict = false) {
    if (!value.is_object() && !value.is_boolean()) return parameter.wrong(value, kJsonSchema.type);
    HR_TRY(check_schema(parameter, "", value, is_strict));
    if (value == false) return parameter.wrong(value, "a schema that some value fits");
    const bool anything = value == true || (value.is_object() && value.empty());
    settings.request.json_schema = anything ? R"({"type":"object"})" : value.dump();
    return success();
}

Status read_json_schema(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (!value.is_string()) return store_schema(parameter, settings, value);
    // A schema may be given as its text; an empty one takes an inherited schema back.
    const std::string& text = value.get_ref<const std::string&>();
    if (text.empty()) {
        settings.request.json_schema.clear();
        return success();
    }
    HR_ASSIGN(const Json schema,
              parse_json(text, fmt::format("'{}' is a text that is no JSON", parameter.key)));
    return store_schema(parameter, settings, schema);
}

Json write_json_schema(const Settings& settings) {
    const std::string& text = settings.request.json_schema;
    return text.empty() ? Json(nullptr) : Json::parse(text);
}

/// OpenAI's {"type": "json_schema", "json_schema": {"schema": {...}}}; llama-server has the schema beside the
/// type, too.
Status read_response_format(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (!value.is_object() || !value.contains("type") || !value["type"].is_string())
        return parameter.wrong(value, kResponseFormat.type);
    const std::string& type = value["type"].get_ref<const std::string&>();
    if (type == "text") {
        settings.request.json_schema.clear();
        return success();
    }
    if (type == "json_object")
        return store_schema(parameter, settings, value.contains("schema") ? value["schema"] : Json::object());
    if (type != "json_schema") return parameter.wrong(value, kResponseFormat.type);
    const Json& holder = value.contains("json_schema") ? value["json_schema"] : value;
    if (!holder.is_object() || !holder.contains("schema"))
        return parameter.wrong(value, kResponseFormat.type);
    HR_ASSIGN(bool is_strict, strictness(parameter, "", holder));
    if (&holder != &value && value.contains("strict")) {
        HR_ASSIGN(const bool beside, strictness(parameter, "", value));
        is_strict = is_strict || beside;
        parameter.warn(true,
                       fmt::format("'{}.strict' belongs into 'json_schema', beside 'schema'", parameter.key));
    }
    return store_schema(parameter, settings, holder["schema"], is_strict);
}

constexpr std::string_view kTriggerTypes[] = {"token", "word", "pattern", "pattern_full"};
constexpr std::string_view kTriggerMustBe =
    "a text, or an object with \"value\" (a text), \"type\" (token, word, pattern, pattern_full, or 0 to 3) "
    "and, "
    "of type token, \"token\" (an id)";

Result<GrammarTrigger> read_trigger(const ParameterContext& parameter, const Json& value) {
    GrammarTrigger trigger;
    if (value.is_string()) {
        trigger.value = value.get<std::string>();
    } else {
        if (!value.is_object()) return parameter.wrong(value, kTriggerMustBe);
        if (value.contains("type")) {
            const Json& type = value["type"];
            std::size_t number = 0;
            while (number < std::size(kTriggerTypes) && type != kTriggerTypes[number] && type != Json(number))
                ++number;
            if (number == std::size(kTriggerTypes)) return parameter.wrong(value, kTriggerMustBe);
            trigger.type = static_cast<GrammarTrigger::Type>(number);
        }
        if (value.contains("value") && value["value"].is_string())
            trigger.value = value["value"].get<std::string>();
        if (value.contains("token")) {
            HR_ASSIGN(const std::int64_t token,
                      read_integer(parameter, value["token"], 0, kMaxInt, "a token id"));
            trigger.token = static_cast<std::int32_t>(token);
        }
    }
    const bool is_token = trigger.type == GrammarTrigger::Type::token;
    if (is_token ? trigger.token < 0 : trigger.value.empty()) return parameter.wrong(value, kTriggerMustBe);
    if (const Status fit = check_trigger(trigger); !fit.ok())
        return fit.error().within(fmt::format("'{}' is the {} \"{:.60}\"", parameter.key,
                                              is_pattern(trigger) ? "pattern" : "word", trigger.value));
    return trigger;
}

constexpr std::string_view kTriggerPatternsMustBe = "{\"enabled\": true or false, \"patterns\": texts}";
constexpr std::size_t kMostMembers = 16;  // each that is not known has a warning

/// What other backends have under this name: patterns that end an answer.
Status read_trigger_patterns(const ParameterContext& parameter, Settings& settings, const Json& value) {
    if (value.size() > kMostMembers) return parameter.wrong(value, kTriggerPatternsMustBe);
    std::vector<std::string> patterns;
    bool enabled = true;
    for (const auto& [name, member] : value.items()) {
        if (member.is_null()) continue;
        if (name == "enabled" && member.is_boolean()) {
            enabled = member.get<bool>();
        } else if (name == "patterns" && member.is_array()) {
            ParameterContext list = parameter;
            list.key += ".patterns";
            HR_TRY(read_strings(list, member, patterns));
        } else {
            parameter.warn(true, fmt::format("'{}.{}' is {}, which is not used; the whole must be {}",
                                             parameter.key, name, shown(member), kTriggerPatternsMustBe));
        }
    }
    if (!enabled) patterns.clear();
    settings.request.stopping.trigger_patterns = std::move(patterns);
    return success();
}

Status read_grammar_triggers(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (value.is_object() && parameter.lenient) return read_trigger_patterns(parameter, settings, value);
    if (!value.is_array() || value.size() > 256) return parameter.wrong(value, kGrammarTriggers.type);
    std::vector<GrammarTrigger> triggers;
    for (const Json& item : value) {
        ParameterContext entry = parameter;
        entry.key = fmt::format("{}[{}]", parameter.key, triggers.size());
        HR_ASSIGN(triggers.emplace_back(), read_trigger(entry, item));
    }
    settings.request.sampling.grammar_triggers = std::move(triggers);
    return success();
}

Json write_grammar_triggers(const Settings& settings) {
    Json list = Json::array();
    for (const GrammarTrigger& trigger : settings.request.sampling.grammar_triggers) {
        Json entry = {{"type", kTriggerTypes[static_cast<std::size_t>(trigger.type)]},
                      {"value", trigger.value}};
        if (trigger.token >= 0) entry["token"] = trigger.token;
        list.push_back(std::move(entry));
    }
    return list;
}

}  // namespace

const Custom kSamplers{read_samplers, write_samplers, "a list of samplers' names, or a text of their letters",
                       false};
const Custom kLogitBias{read_logit_bias, write_logit_bias,
                        "a list of pairs or an object from tokens or texts to numbers or false"};
const Custom kLogprobs{read_logprobs, [](const Settings& s) { return Json(s.request.sampling.n_probs); },
                       "an integer of at least 0, or true or false", false};
const Custom kJsonSchema{read_json_schema, write_json_schema, "a JSON schema: an object, or its text"};
const Custom kResponseFormat{
    read_response_format, write_json_schema,
    "{\"type\": \"text\"}, {\"type\": \"json_object\"} or {\"type\": \"json_schema\", "
    "\"json_schema\": {\"schema\": ...}}"};
const Custom kGrammarTriggers{read_grammar_triggers, write_grammar_triggers,
                              "a list of at most 256 triggers: texts, or objects with type, value and token"};

}  // namespace headrace::llm
