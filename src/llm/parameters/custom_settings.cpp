#include <algorithm>
#include <array>
#include <cmath>

#include "llm/parameters/custom.h"
#include "llm/parameters/names.h"
#include "llm/parameters/schemas.h"
#include "llm/parameters/value.h"
#include "llm/schema/schema_cost.h"

namespace headrace::llm {
namespace {

constexpr std::array<std::string_view, 4> kPriorities = {"low", "normal", "high", "urgent"};

Status read_priority(ParameterContext& parameter, Settings& settings, const Json& given) {
    Json value = given;
    if (given.is_number()) {
        HR_ASSIGN(value,
                  number_within(parameter, given, reject(0, double{kPriorities.size() - 1}), kPriority.type));
    }
    for (std::size_t i = 0; i < kPriorities.size(); ++i)
        if (value == Json(i) ||
            (value.is_string() && key_parts(value.get<std::string>())[0] == kPriorities[i])) {
            settings.request.priority = static_cast<Priority>(i);
            return success();
        }
    return parameter.wrong(given, kPriority.type);
}

Json write_priority(const Settings& settings) {
    return kPriorities[static_cast<std::size_t>(settings.request.priority)];
}

/// Switches on what a threshold of its own would; one that is given stays. The detection of repetitions
/// belongs to the same group in other backends' configurations.
Status read_semantic_stopping(ParameterContext& parameter, Settings& settings, const Json& value) {
    constexpr float kUsual = 0.9f;
    if (!value.is_boolean()) return parameter.wrong(value, kSemanticStopping.type);
    StoppingSettings& stopping = settings.request.stopping;
    float& threshold = stopping.similarity_threshold;
    threshold = !value.get<bool>() ? 0 : threshold > 0 ? threshold : kUsual;
    if (!value.get<bool>()) stopping.detect_repetition = false;
    return success();
}

Json write_semantic_stopping(const Settings& settings) {
    return settings.request.stopping.similarity_threshold > 0;
}

/// Over those that there are: a request's over the model's.
Status read_template_kwargs(ParameterContext& parameter, Settings& settings, const Json& value) {
    constexpr std::size_t kMost = 256;  // llama.cpp's time for them grows with their square
    if (!value.is_object()) return parameter.wrong(value, kTemplateKwargs.type);
    TextMap kwargs = settings.request.template_kwargs;
    for (const auto& [name, argument] : value.items()) {
        if (name == "enable_thinking") {
            if (!argument.is_boolean()) return parameter.wrong(value, "true or false in enable_thinking");
            settings.request.enable_thinking = argument.get<bool>();
        }
        kwargs[name] = argument.dump();
    }
    if (kwargs.size() > kMost)
        return invalid("'{}' has {} values; at most {} are allowed", parameter.key, kwargs.size(), kMost);
    settings.request.template_kwargs = std::move(kwargs);
    return success();
}

Json write_template_kwargs(const Settings& settings) {
    Json object = Json::object();
    for (const auto& [name, text] : settings.request.template_kwargs) object[name] = Json::parse(text);
    return object;
}

/// Templates read the word; "none" also turns thinking off.
Status read_reasoning_effort(ParameterContext& parameter, Settings& settings, const Json& value) {
    HR_ASSIGN(const std::string effort, read_text(parameter, value, kReasoningEffort.type));
    if (effort == "none") settings.request.enable_thinking = false;
    settings.request.template_kwargs["reasoning_effort"] = Json(effort).dump();
    return success();
}

Json write_reasoning_effort(const Settings& settings) {
    const auto at = settings.request.template_kwargs.find("reasoning_effort");
    return at == settings.request.template_kwargs.end() ? Json(nullptr) : Json::parse(at->second);
}

/// What cannot be kept to of its arguments' schema; an error where the tool is strict.
Status check_tool(const ParameterContext& parameter, const std::string& place, const Json& tool) {
    const bool is_wrapped = tool.contains("function") && tool["function"].is_object();
    const Json& function = is_wrapped ? tool["function"] : tool;
    HR_ASSIGN(bool is_strict, strictness(parameter, place + (is_wrapped ? ".function" : ""), function));
    if (is_wrapped && tool.contains("strict")) {
        HR_ASSIGN(const bool beside, strictness(parameter, place, tool));
        is_strict = is_strict || beside;
        parameter.warn(true, fmt::format("'{}{}.strict' belongs into 'function'", parameter.key, place));
    }
    const auto parameters = function.find("parameters");
    if (parameters == function.end() || !parameters->is_object()) return success();
    return check_schema(parameter, fmt::format("{}{}.parameters", place, is_wrapped ? ".function" : ""),
                        *parameters, is_strict);
}

Status read_tools(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (!value.is_array()) return parameter.wrong(value, kTools.type);
    for (const Json& tool : value)
        if (!tool.is_object()) return parameter.wrong(tool, "an object, as every tool");
    if (const Status cost = check_schema_cost(value); !cost.ok()) return cost.error().within(parameter.key);
    for (std::size_t i = 0; i < value.size(); ++i)
        HR_TRY(check_tool(parameter, fmt::format("[{}]", i), value[i]));
    settings.request.tools = value.empty() ? "" : value.dump();
    return success();
}

Json write_tools(const Settings& settings) {
    return settings.request.tools.empty() ? Json::array() : Json::parse(settings.request.tools);
}

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

bool is_message(const Json& value) {
    if (!value.is_object() || value.size() != 2 || !value.contains("role") || !value.contains("content"))
        return false;
    const Json &role = value["role"], &content = value["content"];
    return role.is_string() && content.is_string() &&
           std::find(kRoles.begin(), kRoles.end(), role.get_ref<const std::string&>()) != kRoles.end();
}

Status read_previous_messages(ParameterContext& parameter, Settings& settings, const Json& value) {
    constexpr std::size_t kMost = 10'000;  // seconds in the template of a model
    if (!value.is_array()) return parameter.wrong(value, kPreviousMessages.type);
    if (value.size() > kMost)
        return invalid("'{}' has {} messages; at most {} are allowed", parameter.key, value.size(), kMost);
    Messages messages;
    for (const Json& message : value) {
        if (!is_message(message)) return parameter.wrong(message, kPreviousMessages.type);
        messages.push_back({message["role"].get<std::string>(), message["content"].get<std::string>()});
    }
    settings.request.previous_messages = std::move(messages);
    return success();
}

Json write_previous_messages(const Settings& settings) {
    Json list = Json::array();
    for (const Message& message : settings.request.previous_messages)
        list.push_back({{"role", message.role}, {"content", message.content}});
    return list;
}

constexpr std::string_view kLoraMustBe =
    "a list of {\"id\": position, \"scale\": number}, or, where the model is loaded, of {\"path\": file, "
    "\"scale\": number}";

struct Adapter {
    std::string path;  ///< empty: one that the model has, by position
    int id = -1;
    float scale = 0;
};

Result<Adapter> read_adapter(const ParameterContext& parameter, const Json& value) {
    Adapter adapter;
    if (value.is_string()) {
        adapter.path = value.get<std::string>();
        adapter.scale = 1;
    } else {
        if (!value.is_object()) return parameter.wrong(value, kLoraMustBe);
        if (value.contains("path") && value["path"].is_string())
            adapter.path = value["path"].get<std::string>();
        if (value.contains("id")) {
            HR_ASSIGN(const std::int64_t id,
                      read_integer(parameter, value["id"], 0, 1e6, "an adapter's position from 0"));
            adapter.id = static_cast<int>(id);
        }
        if (!adapter.path.empty())
            adapter.scale = 1;  // by position an unnamed scale is 0, as in llama-server
        if (value.contains("scale")) {
            const Json& scale = value["scale"];
            if (!scale.is_number() || std::abs(scale.get<double>()) > 1e6)
                return parameter.wrong(value, "given a scale between -1000000 and 1000000");
            adapter.scale = scale.get<float>();
        }
    }
    if (adapter.path.empty() == (adapter.id < 0)) return parameter.wrong(value, kLoraMustBe);
    if (!adapter.path.empty() && parameter.level > Level::model)
        return parameter.wrong(value, "an id here; files are given where the model is loaded");
    return adapter;
}

Status read_lora(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (!value.is_array() || value.size() > 64) return parameter.wrong(value, kLora.type);
    AdapterFiles files;
    AdapterScales scales;
    for (std::size_t i = 0; i < value.size(); ++i) {
        ParameterContext entry = parameter;
        entry.key = fmt::format("{}[{}]", parameter.key, i);
        HR_ASSIGN(Adapter adapter, read_adapter(entry, value[i]));
        if (adapter.path.empty())
            scales.emplace_back(adapter.id, adapter.scale);
        else
            files.emplace_back(std::move(adapter.path), adapter.scale);
    }
    if (!files.empty() || (value.empty() && parameter.level <= Level::model))
        settings.model.lora = std::move(files);
    settings.request.lora = std::move(scales);
    return success();
}

Json write_lora(const Settings& settings) {
    Json list = Json::array();
    for (const auto& [path, scale] : settings.model.lora) list.push_back({{"path", path}, {"scale", scale}});
    for (const auto& [id, scale] : settings.request.lora) list.push_back({{"id", id}, {"scale", scale}});
    return list;
}

bool is_kv_override(std::string_view text) {
    const std::size_t equals = text.find('='), colon = text.find(':', equals);
    if (equals == 0 || equals == text.npos || colon == text.npos || equals > 127) return false;
    const std::string_view type = text.substr(equals + 1, colon - equals - 1);
    return (type == "int" || type == "float" || type == "bool" || type == "str") && colon + 1 < text.size();
}

Status read_kv_overrides(ParameterContext& parameter, Settings& settings, const Json& value) {
    const Json list = value.is_string() ? Json::array({value}) : value;
    if (!list.is_array() || list.size() > 256) return parameter.wrong(value, kKvOverrides.type);
    std::vector<std::string> overrides;
    for (const Json& item : list) {
        HR_ASSIGN(overrides.emplace_back(), read_text(parameter, item, kKvOverrides.type));
        if (!is_kv_override(overrides.back())) return parameter.wrong(item, kKvOverrides.type);
    }
    settings.model.kv_overrides = std::move(overrides);
    return success();
}

/// The two switches of older configurations as one mode.
Status read_load_switch(const ParameterContext& parameter, std::string& mode, const Json& value,
                        bool is_lock) {
    if (!value.is_boolean()) return parameter.wrong(value, "true or false");
    bool map = mode == "auto" || mode.find("mmap") != mode.npos;
    bool lock = mode.find("mlock") != mode.npos;
    (is_lock ? lock : map) = value.get<bool>();
    mode = map ? (lock ? "mmap+mlock" : "mmap") : (lock ? "mlock" : "none");
    return success();
}

Status read_rope_scale(ParameterContext& parameter, Settings& settings, const Json& value) {
    HR_ASSIGN(const double scale, number_within(parameter, value, reject(1e-6, 1e6), kRopeScale.type));
    settings.context.rope_freq_scale = 1 / static_cast<float>(scale);
    return success();
}

Json write_rope_scale(const Settings& settings) {
    const float scale = settings.context.rope_freq_scale;
    return scale > 0 ? Json(1 / scale) : Json(nullptr);
}

Status read_model_aliases(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (!value.is_object()) return parameter.wrong(value, kModelAliases.type);
    TextMap aliases = settings.model_aliases;  // of a level below, to which these are added
    for (const auto& [name, path] : value.items()) {
        HR_ASSIGN(aliases[name], read_text(parameter, path, kModelAliases.type));
        if (name.empty() || aliases[name].empty()) return parameter.wrong(value, kModelAliases.type);
    }
    settings.model_aliases = std::move(aliases);
    return success();
}

Status read_log_switch(const ParameterContext& parameter, std::string& level, const Json& value,
                       std::string_view on, std::string_view off) {
    if (!value.is_boolean()) return parameter.wrong(value, "true or false");
    if (level != "debug" || !value.get<bool>()) level = value.get<bool>() ? on : off;
    return success();
}

Status read_chat(ParameterContext& parameter, Settings& settings, const Json& value) {
    if (value.is_boolean()) {
        settings.request.chat = value.get<bool>() ? "on" : "off";
        return success();
    }
    for (std::string_view mode : {"auto", "on", "off"})
        if (value == mode) {
            settings.request.chat = mode;
            return success();
        }
    return parameter.wrong(value, kChat.type);
}

Json write_chat(const Settings& settings) { return settings.request.chat; }

Json write_log_level(const Settings& settings) { return settings.log.level; }
Json write_load_mode(const Settings& settings) { return settings.model.load_mode; }

}  // namespace

const Custom kPriority{read_priority, write_priority, "one of low, normal, high, urgent, or 0 to 3", false};
const Custom kChat{read_chat, write_chat, "true, false or auto", false};
const Custom kSemanticStopping{read_semantic_stopping, write_semantic_stopping, "true or false", false};
const Custom kTemplateKwargs{read_template_kwargs, write_template_kwargs, "an object"};
const Custom kReasoningEffort{read_reasoning_effort, write_reasoning_effort,
                              "a text such as none, low or high", false};
const Custom kTools{read_tools, write_tools, "a list of OpenAI's tool definitions", false};
const Custom kPreviousMessages{read_previous_messages, write_previous_messages,
                               "a list of {\"role\": \"system\", \"user\", \"assistant\" or \"tool\", "
                               "\"content\": text}",
                               false};
const Custom kLora{read_lora, write_lora, kLoraMustBe, false};
const Custom kKvOverrides{read_kv_overrides, [](const Settings& s) { return Json(s.model.kv_overrides); },
                          "texts such as \"general.name=str:x\" (int, float, bool, str)", false};
const Custom kUseMmap{[](ParameterContext& parameter, Settings& s, const Json& value) {
                          return read_load_switch(parameter, s.model.load_mode, value, false);
                      },
                      write_load_mode, "true or false", false};
const Custom kUseMlock{[](ParameterContext& parameter, Settings& s, const Json& value) {
                           return read_load_switch(parameter, s.model.load_mode, value, true);
                       },
                       write_load_mode, "true or false", false};
const Custom kRopeScale{read_rope_scale, write_rope_scale, "a number from 1e-06 to 1e+06", false};
const Custom kModelAliases{read_model_aliases, [](const Settings& s) { return Json(s.model_aliases); },
                           "an object from names to paths"};
const Custom kEnableLog{[](ParameterContext& parameter, Settings& s, const Json& value) {
                            return read_log_switch(parameter, s.log.level, value, "info", "error");
                        },
                        write_log_level, "true or false", false};
const Custom kEnableDebugLog{
    [](ParameterContext& parameter, Settings& s, const Json& value) {
        return value == Json(false) ? success() : read_log_switch(parameter, s.log.level, value, "debug", "");
    },
    write_log_level, "true or false", false};

}  // namespace headrace::llm
