#include "llm/checks/schema_patterns.h"

#include <common/json-schema-to-grammar.h>

#include <algorithm>

namespace headrace::llm {
namespace {

/// Thrown where a grammar is half made: finishing it would print what it lacks.
struct Finished {};

bool is_ignored(const std::string& pattern) {
    bool ignored = false;
    try {
        const Json schema = {{"type", "string"}, {"pattern", pattern}};
        const auto document = common_chat_schema_from_json(common_json::parse(schema.dump()));
        build_grammar([&](const common_grammar_builder& builder) {
            const std::string rule = builder.add_schema("pattern", *document.root);
            // Another rule of the same name gets another name.
            ignored = builder.add_rule(rule, "string") == rule;
            throw Finished();
        });
    } catch (const Finished&) {
    } catch (const std::exception&) {  // the schema's own conversion says what is wrong
    }
    return ignored;
}

void collect(const Json& schema, std::vector<std::string>& found) {
    if (schema.is_object()) {
        const auto pattern = schema.find("pattern");
        if (pattern != schema.end() && pattern->is_string()) {
            const auto& text = pattern->get_ref<const std::string&>();
            if (std::find(found.begin(), found.end(), text) == found.end() && is_ignored(text))
                found.push_back(text);
        }
        constexpr std::string_view kValues[] = {"const", "enum", "default", "examples"};  // no schemas
        for (const auto& [name, part] : schema.items())
            if (std::find(std::begin(kValues), std::end(kValues), name) == std::end(kValues))
                collect(part, found);
    } else if (schema.is_array()) {
        for (const Json& part : schema) collect(part, found);
    }
}

}  // namespace

std::vector<std::string> ignored_patterns(const Json& schema) {
    std::vector<std::string> found;
    collect(schema, found);
    return found;
}

}  // namespace headrace::llm
