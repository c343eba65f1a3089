#include "doors/serve/request/tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

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

void check_function(const Json& given, const std::string& place) {
    const Fields fields(given, place);
    if (fields.required_text("name").empty()) throw wrong_field(fields.name("name"), "is empty");
    static_cast<void>(fields.object("parameters"));
    static_cast<void>(fields.text("description"));
}

const std::string& checked_name(const Json& given, const std::string& place) {
    const Fields tool(given, place);
    if (const std::string type = tool.required_text("type"); type != kFunction)
        throw wrong_field(tool.name("type"),
                          fmt::format("is '{:.40}'; only tools of the type function are offered", type));
    const Json* function = tool.object(kFunction);
    if (!function) throw wrong_field(tool.name(kFunction), "is missing");
    check_function(*function, tool.name(kFunction));
    return (*function)["name"].get_ref<const std::string&>();
}

/// place: of the choice, for errors.
void set_tools(Json tools, const Choice& choice, const std::string& place, Parameters& parameters) {
    std::set<std::string> known;
    for (std::size_t i = 0; i < tools.size(); ++i)
        known.insert(checked_name(tools[i], fmt::format("tools[{}]", i)));
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

void read_tools(const Fields& body, Parameters& parameters) {
    const Json* tools = body.list("tools");
    const Json* given = body.any("tool_choice");
    const Choice choice = given ? choice_of(*given, "tool_choice") : Choice();
    if (tools && !tools->empty()) return set_tools(*tools, choice, "tool_choice", parameters);
    if (given) throw wrong_field("tool_choice", "is only allowed when 'tools' are given");
}

bool read_functions(const Fields& body, Parameters& parameters) {
    const Json* functions = body.list("functions");
    const Json* given = body.any("function_call");
    if (given && (!functions || functions->empty()))
        throw wrong_field("function_call", "is only allowed when 'functions' are given");
    if (!functions || functions->empty()) return false;
    if (body.any("tools")) throw wrong_field("functions", "cannot be given with 'tools', their newer name");
    Json tools = Json::array();
    for (std::size_t i = 0; i < functions->size(); ++i) {
        check_function((*functions)[i], fmt::format("functions[{}]", i));
        tools.push_back({{"type", kFunction}, {std::string(kFunction), (*functions)[i]}});
    }
    const bool is_known = !given || given->is_object() || *given == "auto" || *given == "none";
    if (!is_known)
        throw wrong_field("function_call", "must be auto, none, or an object with the name of a function");
    const Choice choice = given ? choice_of(*given, "function_call") : Choice();
    set_tools(std::move(tools), choice, "function_call", parameters);
    parameters.set("parallel_tool_calls", false);
    return true;
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
