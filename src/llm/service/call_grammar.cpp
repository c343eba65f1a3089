#include "llm/service/call_grammar.h"

#include <common/chat-peg-parser.h>
#include <common/json-schema-to-grammar.h>
#include <common/json.h>
#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>

#include "llm/schema/kept_schema.h"
#include "llm/schema/schema_cost.h"
#include "llm/schema/schema_grammar.h"
#include "llm/service/call_arguments.h"
#include "llm/service/gbnf_text.h"

namespace headrace::llm {
namespace {

using RuleNames = std::set<std::string, std::less<>>;

constexpr std::string_view kNothing = "no-text";

/// What a template's parser says about its grammar, whose rules bear the same names.
class CallShape {
public:
    CallShape(const common_peg_arena& parser, bool may_think) : parser_(parser), may_think_(may_think) {
        if (!parser.empty()) see(parser.root(), "root", false);
    }

    bool has_calls = false;
    RuleNames outermost;                        ///< the rules of all calls together
    std::map<std::string, RuleNames> texts_in;  ///< by rule: the names in it that stand for other text

private:
    void see(common_peg_parser_id id, const std::string& rule, bool in_text) {
        std::visit([&](const auto& part) { see_part(part, id, rule, in_text); }, parser_.get(id));
    }

    template <class Part>
    void see_part(const Part& part, common_peg_parser_id id, const std::string& rule, bool in_text) {
        if constexpr (std::is_same_v<Part, common_peg_rule_parser>) {
            if (in_text) texts_in[rule].insert(part.name);
            if (part.trigger) outermost.insert(part.name);
            if (!in_text && seen_.insert(part.name).second) see(part.child, part.name, false);
        } else if constexpr (std::is_same_v<Part, common_peg_ref_parser>) {
            see(parser_.get_rule(part.name), rule, in_text);
        } else if constexpr (std::is_same_v<Part, common_peg_tag_parser>) {
            has_calls = has_calls || part.tag == common_chat_peg_builder::TOOL_NAME;
            const bool is_text = part.tag == common_chat_peg_builder::CONTENT ||
                                 (part.tag == common_chat_peg_builder::REASONING && !may_think_);
            see(part.child, rule, in_text || is_text);
        } else if constexpr (std::is_same_v<Part, common_peg_until_parser>) {
            if (in_text) texts_in[rule].insert(fmt::format("until-{}", id));  // as llama.cpp names its rule
        } else if constexpr (requires { part.children; }) {
            for (const common_peg_parser_id child : part.children) see(child, rule, in_text);
        } else if constexpr (requires { part.child; }) {
            see(part.child, rule, in_text);
        }
    }

    const common_peg_arena& parser_;
    const bool may_think_;
    RuleNames seen_;
};

constexpr std::string_view kAnswer = "answer-";

/// The schema's grammar, whose rules have names of their own.
Result<std::string> answer_grammar(const std::string& schema) {
    HR_ASSIGN(const std::string grammar, schema_grammar(schema));
    RuleNames names;
    for_each_line(grammar, [&](std::string_view line) { names.emplace(name_of_rule(line)); });
    std::string own;
    for_each_line(grammar, [&](std::string_view line) {
        own += with_names(line, [&](std::string_view piece) {
            return names.contains(piece) ? fmt::format("{}{}", kAnswer, piece) : std::string(piece);
        });
        own += '\n';
    });
    return own;
}

}  // namespace

Result<std::string> call_grammar(const common_chat_params& format, const CallTools& tools,
                                 const CallRules& rules) {
    const auto [parser, calls] = with_strict_arguments(format, tools.tools, rules.is_forced);
    const std::string& begun = format.thinking_start_tag;
    const bool thinks = !begun.empty() && format.generation_prompt.find(begun) != std::string::npos;
    const CallShape shape(parser, rules.may_think || thinks);
    if (!shape.has_calls) return std::string();
    std::string grammar = fmt::format("{} ::= \"\"\n", kNothing);
    if (!rules.or_schema.empty()) {
        HR_ASSIGN(const std::string answer, answer_grammar(rules.or_schema));
        grammar += answer;
    }
    for_each_line(calls, [&](std::string_view line) {
        const std::string name(name_of_rule(line));
        const auto texts = shape.texts_in.find(name);
        const bool is_outermost = shape.outermost.contains(name);
        grammar += with_names(line, [&](std::string_view piece) -> std::string {
            if (rules.is_forced && texts != shape.texts_in.end() && texts->second.contains(piece))
                return std::string(kNothing);
            if (is_outermost) return rules.is_single && piece == "+" ? "" : std::string(piece);
            const bool may_answer = !rules.or_schema.empty() && shape.outermost.contains(piece);
            return may_answer ? fmt::format("({} | {}root)", piece, kAnswer) : std::string(piece);
        });
        grammar += '\n';
    });
    return with_numbers(std::move(grammar), tools.numbers);
}

Result<CallTools> kept_tools(std::vector<common_chat_tool> tools) {
    CallTools kept{.tools = std::move(tools)};
    for (common_chat_tool& tool : kept.tools) {
        const Json given = Json::parse(tool.parameters.empty() ? "{}" : tool.parameters);
        if (given.empty() || is_plain_schema(given)) continue;
        HR_ASSIGN(KeptSchema schema, keep_schema(given, kept.numbers.size()));
        HR_TRY(check_schema_cost(schema.schema));
        kept.numbers.insert(kept.numbers.end(), schema.numbers.begin(), schema.numbers.end());
        tool.parameters = schema.schema.dump();
        kept.is_changed = true;
    }
    return kept;
}

}  // namespace headrace::llm
