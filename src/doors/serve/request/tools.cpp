#include "doors/serve/request/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "base/parameter_json.h"

namespace headrace::serve {
namespace {

constexpr std::string_view kFunction = "function";

/// What a choice leaves of the tools, and whether one of them must be called.
struct Choice {
    std::string mode = "auto";
    std::set<std::string> names;  ///< none: all
};

[[noreturn]] void wrong_choice(const Json& choice, const std::string& place) {
    throw wrong_field(
        place, fmt::format("is {:.60}; it must be auto, none, required, an object that names a function, or "
                           "one of allowed_tools",
                           text_of(choice)));
}

/// {"type": "function", "function": {"name": ...}}, or in the shape of responses {"type": "function", "name":
/// ...}.
std::string named_function(const Json& given, const std::string& place) {
    const Fields fields(given, place);
    if (const std::string type = fields.text("type").value_or(std::string(kFunction)); type != kFunction)
        throw wrong_field(fields.name("type"),
                          fmt::format("is '{:.40}'; only tools of the type function can be called", type));
    const Json* function = fields.object(kFunction);
    return function ? Fields(*function, fields.name(kFunction)).required_text("name")
                    : fields.required_text("name");
}

Choice allowed_tools(const Fields& given) {
    const Json* inner = given.object("allowed_tools");  // of chats; responses have it without
    const Fields fields = inner ? Fields(*inner, given.name("allowed_tools")) : given;
    Choice choice{.mode = fields.required_text("mode")};
    if (choice.mode != "auto" && choice.mode != "required")
        throw wrong_field(fields.name("mode"),
                          fmt::format("is '{:.40}'; it must be auto or required", choice.mode));
    const Json* tools = fields.list("tools");
    if (!tools || tools->empty())
        throw wrong_field(fields.name("tools"), "must list at least one of the tools");
    for (std::size_t i = 0; i < tools->size(); ++i)
        choice.names.insert(named_function((*tools)[i], fmt::format("{}[{}]", fields.name("tools"), i)));
    return choice;
}

Choice choice_of(const Json& given, const std::string& place) {
    if (given.is_string()) {
        const auto& word = given.get_ref<const std::string&>();
        if (word != "auto" && word != "none" && word != "required") wrong_choice(given, place);
        return {.mode = word};
    }
    if (!given.is_object()) wrong_choice(given, place);
    const Fields fields(given, place);
    if (fields.text("type") == "allowed_tools") return allowed_tools(fields);
    if (!fields.any(kFunction) && !fields.any("name") && !fields.any("type")) wrong_choice(given, place);
    return {.mode = "required", .names = {named_function(given, place)}};
}

void check_function(const Json& given, const std::string& place, std::size_t longest) {
    const Fields fields(given, place);
    if (longest != kAnyToolName)
        static_cast<void>(tool_name(fields, longest));
    else if (fields.required_text("name").empty())
        throw wrong_field(fields.name("name"), "is empty");
    static_cast<void>(fields.object("parameters"));
    static_cast<void>(fields.text("description"));
}

const std::string& checked_name(const Json& given, const std::string& place, std::size_t longest) {
    const Fields tool(given, place);
    if (const std::string type = tool.required_text("type"); type != kFunction)
        throw wrong_field(tool.name("type"),
                          fmt::format("is '{:.40}'; only tools of the type function are offered", type));
    const Json* function = tool.object(kFunction);
    if (!function) throw wrong_field(tool.name(kFunction), "is missing");
    check_function(*function, tool.name(kFunction), longest);
    return (*function)["name"].get_ref<const std::string&>();
}

/// place: of the choice, for errors.
void set_tools(Json tools, const Choice& choice, const std::string& place, std::size_t longest,
               Parameters& parameters) {
    std::set<std::string> known;
    for (std::size_t i = 0; i < tools.size(); ++i) {
        const std::string& name = checked_name(tools[i], fmt::format("tools[{}]", i), longest);
        if (!known.insert(name).second && longest != kAnyToolName)
            throw wrong_field("tools", fmt::format("must have unique names, and '{}' comes twice", name));
    }
    for (const std::string& name : choice.names)
        if (!known.contains(name))
            throw wrong_field(place, fmt::format("names '{:.60}', which is none of the tools", name));
    if (!choice.names.empty())
        std::erase_if(tools.get_ref<Json::array_t&>(), [&](const Json& tool) {
            return !choice.names.contains(tool[kFunction]["name"].get_ref<const std::string&>());
        });
    parameters.set("tools", parameter_of(tools));
    parameters.set("tool_choice", choice.mode);
}

}  // namespace

std::string tool_name(const Fields& tool, std::size_t longest) {
    std::string name = tool.required_text("name");
    const bool has_other = std::ranges::any_of(name, [](unsigned char letter) {
        return !(letter < 0x80 && (std::isalnum(letter) || letter == '_' || letter == '-'));
    });
    if (name.empty() || name.size() > longest || has_other)
        throw wrong_field(
            tool.name("name"),
            fmt::format("is '{:.140}'; it must match the pattern ^[a-zA-Z0-9_-]{{1,{}}}$", name, longest));
    return name;
}

void read_tools(const Fields& body, std::size_t longest, Parameters& parameters) {
    const Json* tools = body.list("tools");
    const Json* given = body.any("tool_choice");
    const Choice choice = given ? choice_of(*given, "tool_choice") : Choice();
    if (tools && !tools->empty()) return set_tools(*tools, choice, "tool_choice", longest, parameters);
    if (given) throw wrong_field("tool_choice", "is only allowed when 'tools' are given");
}

bool read_functions(const Fields& body, std::size_t longest, Parameters& parameters) {
    const Json* functions = body.list("functions");
    const Json* given = body.any("function_call");
    if (given && (!functions || functions->empty()))
        throw wrong_field("function_call", "is only allowed when 'functions' are given");
    if (!functions || functions->empty()) return false;
    if (body.any("tools")) throw wrong_field("functions", "cannot be given with 'tools', their newer name");
    Json tools = Json::array();
    for (std::size_t i = 0; i < functions->size(); ++i) {
        check_function((*functions)[i], fmt::format("functions[{}]", i), longest);
        tools.push_back({{"type", kFunction}, {std::string(kFunction), (*functions)[i]}});
    }
    const bool is_known = !given || given->is_object() || *given == "auto" || *given == "none";
    if (!is_known)
        throw wrong_field("function_call", "must be auto, none, or an object with the name of a function");
    const Choice choice = given ? choice_of(*given, "function_call") : Choice();
    try {
        set_tools(std::move(tools), choice, "function_call", longest, parameters);
    } catch (const ApiError& error) {
        throw renamed(error, {{"tools", "functions"}});
    }
    parameters.set("parallel_tool_calls", false);
    return true;
}

namespace {

/// The calls of the assistant's last message, and the messages that answer them.
class OpenCalls {
public:
    /// Any message but a tool's.
    void begin(const Fields& message) {
        end();
        ids_.clear();
        const Json* calls = message.list("tool_calls");
        has_calls_ = calls && !calls->empty();
        place_ = message.name("tool_calls");
        for (std::size_t i = 0; has_calls_ && i < calls->size(); ++i)
            ids_.push_back(Fields((*calls)[i], place_).text("id").value_or(""));
        waiting_ = std::set<std::string>(ids_.begin(), ids_.end());
        waiting_.erase("");
    }
    void answer(const Fields& message) {
        if (!has_calls_)
            throw wrong_field(
                message.name("role"),
                "is 'tool', and there is no message with 'tool_calls' before it that it could be "
                "a response to");
        const std::string id = message.text("tool_call_id").value_or("");
        const bool is_known = std::ranges::find(ids_, id) != ids_.end();
        const bool names_all = std::ranges::find(ids_, "") == ids_.end();
        if (!id.empty() && !is_known && names_all)
            throw wrong_field(
                message.name("tool_call_id"),
                fmt::format("is '{:.60}', and the message with 'tool_calls' before it has no such call", id));
        if (is_known)
            waiting_.erase(id);
        else if (!waiting_.empty())  // who gives no id answers in turn
            waiting_.erase(waiting_.begin());
    }
    void end() const {
        if (waiting_.empty()) return;
        throw wrong_field(
            place_,
            fmt::format("must be followed by tool messages responding to each 'tool_call_id', and '{:.60}' "
                        "has none",
                        *waiting_.begin()));
    }

private:
    std::vector<std::string> ids_;
    std::set<std::string> waiting_;
    std::string place_;
    bool has_calls_ = false;
};

}  // namespace

void check_tool_messages(const Json& messages) {
    OpenCalls calls;
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Fields message(messages[i], fmt::format("messages[{}]", i));
        if (message.text("role") == "tool")
            calls.answer(message);
        else
            calls.begin(message);
    }
    calls.end();
}

void check_can_call(const Parameters& parameters, const ModelInfo& model) {
    const ParameterValue* choice = parameters.find("tool_choice");
    const auto able = model.template_abilities.find("supports_tools");
    // Without a template that shows tools the answer would be any text.
    const bool shows_tools = able == model.template_abilities.end() || able->second;
    if (choice && std::get<std::string>(*choice) == "required" && !shows_tools)
        throw wrong_field("tool_choice", "forces a call, and this model's chat template shows it no tools");
}

}  // namespace headrace::serve
