#include "doors/serve/api/anthropic_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "base/parameter_json.h"
#include "doors/serve/api/anthropic_messages.h"
#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/fields.h"
#include "doors/serve/request/images.h"
#include "doors/serve/request/tools.h"

namespace headrace::serve {
namespace {

constexpr int kMostTokens = 1 << 24;
const std::set<std::string_view> kAnthropicFields = {"model",
                                                     "messages",
                                                     "system",
                                                     "max_tokens",
                                                     "stop_sequences",
                                                     "stream",
                                                     "metadata",
                                                     "tools",
                                                     "tool_choice",
                                                     "thinking",
                                                     "container",
                                                     "mcp_servers",
                                                     "context_management",
                                                     "session",
                                                     "session_id",
                                                     "service_tier",
                                                     "betas",
                                                     "output_config",
                                                     "output_format",
                                                     "previous_messages",
                                                     "verbose",
                                                     "inference_geo",
                                                     "cache_control"};

/// In OpenAI's shape, which the engine reads.
void read_anthropic_tools(const Fields& body, Parameters& parameters) {
    if (const Json* servers = body.list("mcp_servers"); servers && !servers->empty())
        throw wrong_field("mcp_servers",
                          "names servers of tools; this server runs none: give the client tools");
    const Json* given = body.list("tools");
    const Json* choice = body.object("tool_choice");
    if (!given || given->empty()) {
        if (choice) throw wrong_field("tool_choice", "may only be given with 'tools'");
        return;
    }
    constexpr std::size_t kLongestName = 128;
    Json tools = Json::array();
    for (std::size_t i = 0; i < given->size(); ++i) {
        const Fields tool((*given)[i], fmt::format("tools.{}", i));
        Json function = {{"name", tool_name(tool, kLongestName)},
                         {"description", tool.text("description").value_or("")}};
        const Json* schema = tool.object("input_schema");
        if (!schema)
            throw wrong_field(tool.name("input_schema"),
                              "is missing; tools that the server runs are not offered");
        if (Fields(*schema, tool.name("input_schema")).required_text("type") != "object")
            throw wrong_field(tool.name("input_schema.type"), "must be 'object'");
        function["parameters"] = *schema;
        tools.push_back({{"type", "function"}, {"function", std::move(function)}});
    }
    Json shaped = {{"tools", std::move(tools)}};
    bool is_parallel = true;
    if (choice) {
        const Fields fields(*choice, "tool_choice");
        const std::string type = fields.required_text("type");
        if (type == "tool")
            shaped["tool_choice"] = {{"type", "function"},
                                     {"function", {{"name", fields.required_text("name")}}}};
        else if (type == "auto" || type == "none" || type == "any")
            shaped["tool_choice"] = type == "any" ? "required" : type;
        else
            throw wrong_field("tool_choice.type",
                              fmt::format("is '{:.40}'; it must be auto, any, tool or none", type));
        is_parallel = !fields.flag("disable_parallel_tool_use").value_or(false);
    }
    read_tools(Fields(shaped), kLongestName, parameters);
    parameters.set("parallel_tool_calls", is_parallel);
}

/// A format of answers: {"type": "json_schema", "schema": ...}.
void read_answer_format(const Fields& format, Parameters& parameters) {
    const std::string type = format.required_text("type");
    if (type != "json_schema")
        throw wrong_field(format.name("type"), fmt::format("is '{:.40}'; it must be json_schema", type));
    const Json* schema = format.object("schema");
    if (!schema) throw wrong_field(format.name("schema"), "is missing");
    parameters.set("json_schema", parameter_of(*schema));
}

void read_output_config(const Fields& body, Parameters& parameters) {
    if (const Json* format = body.object("output_format"))
        read_answer_format(Fields(*format, "output_format"), parameters);
    const Json* output = body.object("output_config");
    if (!output) return;
    const Fields fields(*output, "output_config");
    if (const Json* format = fields.object("format"))
        read_answer_format(Fields(*format, "output_config.format"), parameters);
    if (const auto effort = fields.text("effort")) parameters.set("reasoning_effort", *effort);
}

/// Refuses fields that would change the answer and that this server lacks.
void refuse_what_messages_lack(const Fields& body) {
    if (body.any("container"))
        throw wrong_field("container", "is not offered: this server runs no tools itself");
    const Json* management = body.object("context_management");
    if (!management) return;
    const Json* edits = Fields(*management, "context_management").list("edits");
    if (edits && !edits->empty())
        throw wrong_field("context_management.edits",
                          "are not offered; leave out what the model need not read again");
}

/// limit: of the answer with its thoughts; none where nothing is written, or only the answer has one.
void read_anthropic_thinking(const Fields& body, std::optional<std::int64_t> limit, Parameters& parameters) {
    constexpr std::int64_t kLeastBudget = 1024;
    bool thinks = false;
    if (const Json* thinking = body.object("thinking")) {
        const Fields fields(*thinking, "thinking");
        const std::string type = fields.required_text("type");
        thinks = type == "enabled" || type == "adaptive";
        if (!thinks && type != "disabled")
            throw wrong_field("thinking.type",
                              fmt::format("is '{:.40}'; it must be enabled, adaptive or disabled", type));
        const auto budget = fields.integer("budget_tokens", kLeastBudget, kMostTokens);
        if (type == "enabled" && !budget) throw wrong_field(fields.name("budget_tokens"), "is missing");
        if (budget && limit && *budget >= *limit)
            throw wrong_field(
                fields.name("budget_tokens"),
                fmt::format("is {}; it must be less than `max_tokens`, which is {}", *budget, *limit));
        if (budget) parameters.set("reasoning_budget_tokens", *budget);
    }
    parameters.set("enable_thinking", thinks);
}

/// Their types and ranges, also of those that change no answer here.
void check_anthropic_fields(const Fields& body) {
    static_cast<void>(body.required_text("model"));
    static_cast<void>(body.number("temperature", 0, 1));
    static_cast<void>(body.number("top_p", 0, 1));
    static_cast<void>(body.integer("top_k", 0, INT32_MAX));
    static_cast<void>(body.text("service_tier"));
    if (const Json* metadata = body.object("metadata"))
        static_cast<void>(Fields(*metadata, "metadata").text("user_id"));
}

void read_stop_sequences(const Fields& body, Parameters& parameters) {
    const Json* stop = body.list("stop_sequences");
    if (!stop) return;
    for (std::size_t i = 0; i < stop->size(); ++i) {
        const Json& text = (*stop)[i];
        if (!text.is_string()) body.wrong("stop_sequences", "a list of texts");
        if (std::ranges::all_of(text.get_ref<const std::string&>(),
                                [](unsigned char letter) { return std::isspace(letter) != 0; }))
            throw wrong_field(fmt::format("stop_sequences.{}", i),
                              "each stop sequence must contain non-whitespace");
    }
    parameters.set("stop", parameter_of(*stop));
}

FieldNames anthropic_names(const Fields& body) {
    return {
        {"session_id", session_field(body)},
        {"n_predict", "max_tokens"},
        {"stop", "stop_sequences"},
        {"reasoning_budget_tokens", "thinking.budget_tokens"},
        {"reasoning_effort", "output_config.effort"},
        {"json_schema", body.any("output_format") ? "output_format.schema" : "output_config.format.schema"}};
}

}  // namespace

ChatBody anthropic_request(const Json& given, const ModelInfo& model, const MessageRules& rules) {
    const Fields body(given);
    check_anthropic_fields(body);
    ChatBody chat{.request = {.messages = anthropic_messages_of(body),
                              .parameters = engine_parameters(given, kAnthropicFields)},
                  .options = {.names = anthropic_names(body)}};
    Request& request = chat.request;
    check_images(request.messages, model);
    Parameters& parameters = request.parameters;
    parameters.set("drop_oldest", false);
    refuse_what_messages_lack(body);
    const auto limit = body.integer("max_tokens", rules.needs_limit ? 1 : 0, kMostTokens);
    if (rules.needs_limit && !limit) throw wrong_field("max_tokens", "is missing");
    if (rules.needs_limit) parameters.set("n_predict", *limit);
    read_stop_sequences(body, parameters);
    read_anthropic_tools(body, parameters);
    check_can_call(parameters, model);
    read_output_config(body, parameters);
    const bool limits_thoughts =
        rules.needs_limit && !(rules.interleaves_thinking && parameters.find("tools"));
    read_anthropic_thinking(body, limits_thoughts ? limit : std::nullopt, parameters);
    if (ends_with_answer(request.messages)) parameters.set("continue_final_message", true);
    read_session(body, parameters);
    return chat;
}

}  // namespace headrace::serve
