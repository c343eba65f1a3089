#include "llm/service/call_grammar.h"

#include <common/chat-peg-parser.h>
#include <common/json-schema-to-grammar.h>
#include <common/json.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>
#include <variant>

namespace headrace::llm {
namespace {

using RuleNames = std::set<std::string, std::less<>>;

constexpr std::string_view kNothing = "no-text";

/// What a template's parser says about its grammar, whose rules bear the same names. (The parser itself comes
/// from llama.cpp without the tools' schemas, so that no other grammar can be made of it.)
class CallShape {
public:
    CallShape(const common_peg_arena& parser, bool may_think) : parser_(parser), may_think_(may_think) {
        if (!parser.empty()) see(parser.root(), "root", false);
    }

    bool has_calls = false;
    RuleNames outermost;                             ///< the rules of all calls together
    std::map<std::string, RuleNames> texts_in;       ///< by rule: the names in it that stand for other text

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

/// A literal, a class of characters, a count of repetitions, a name, or one other character of a rule in GBNF.
std::size_t end_of_piece(std::string_view rule, std::size_t from) {
    const auto is_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '-'; };
    std::size_t end = from + 1;
    constexpr std::string_view kOpening = "\"[{", kClosing = "\"]}";
    if (const std::size_t kind = kOpening.find(rule[from]); kind != std::string_view::npos) {
        const char close = kClosing[kind];
        while (end < rule.size() && rule[end] != close) end += rule[end] == '\\' ? 2 : 1;
        ++end;
    } else if (is_of_name(rule[from])) {
        while (end < rule.size() && is_of_name(rule[end])) ++end;
    }
    return std::min(end, rule.size());
}

template <class Replace>
std::string with_names(std::string_view rule, Replace replace) {
    std::string text;
    for (std::size_t from = 0; from < rule.size();) {
        const std::size_t end = end_of_piece(rule, from);
        text += replace(rule.substr(from, end - from));
        from = end;
    }
    return text;
}

template <class Visit>
void for_each_line(std::string_view grammar, Visit visit) {
    while (!grammar.empty()) {
        const std::string_view line = grammar.substr(0, grammar.find('\n'));
        grammar.remove_prefix(std::min(grammar.size(), line.size() + 1));
        visit(line);
    }
}

constexpr std::string_view kAnswer = "answer-";

/// The schema's grammar, whose rules have names of their own.
std::string answer_grammar(const std::string& schema) {
    const std::string grammar = json_schema_to_grammar(common_json::parse(schema));
    RuleNames names;
    for_each_line(grammar, [&](std::string_view line) { names.emplace(line.substr(0, line.find(" ::= "))); });
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

std::string call_grammar(const common_chat_params& format, const CallRules& rules) {
    common_peg_arena parser;
    if (!format.parser.empty()) parser.load(format.parser);
    const std::string& begun = format.thinking_start_tag;
    const bool thinks = !begun.empty() && format.generation_prompt.find(begun) != std::string::npos;
    const CallShape shape(parser, rules.may_think || thinks);
    if (!shape.has_calls) return {};
    std::string grammar = fmt::format("{} ::= \"\"\n", kNothing);
    if (!rules.or_schema.empty()) grammar += answer_grammar(rules.or_schema);
    for_each_line(format.grammar, [&](std::string_view line) {
        const std::string name(line.substr(0, line.find(" ::= ")));
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
    return grammar;
}

}  // namespace headrace::llm
