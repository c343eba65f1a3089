#include "llm/service/call_arguments.h"

#include <common/chat-peg-parser.h>
#include <common/chat.h>
#include <common/json.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "llm/service/parser_text.h"
#include "llm/service/text_rules.h"

namespace headrace::llm {
namespace {

using Id = ParserText::Id;
using Ids = ParserText::Ids;
using Tag = common_chat_peg_builder;
using ElementTag = common_chat_peg_minimax_m3_mapper;

/// Writes the parser anew where arguments are not held to their schema.
class StrictArguments {
public:
    StrictArguments(ParserText& parser, const std::vector<common_chat_tool>& tools,
                    const common_grammar_builder& builder)
        : parser_(parser), builder_(builder) {
        for (const common_chat_tool& tool : tools)
            schemas_[tool.name] = common_chat_schema_from_json(parameters_of(tool));
    }

    /// False where a schema of the parser belongs to no tool.
    bool write() {
        parser_.set_root(written(parser_.root(), {}));
        return is_complete_;
    }

private:
    struct Place {
        const common_chat_schema* schema = nullptr;  ///< of the call's arguments or of the argument
        bool is_value = false;                       ///< of an argument
        bool is_text = false;                        ///< within one
        bool is_call = false;                        ///< from its name to its end
    };

    static common_json parameters_of(const common_chat_tool& tool) {
        const common_json given = common_json::parse(tool.parameters.empty() ? "{}" : tool.parameters);
        return given.is_object() && !given.empty()
                   ? given
                   : common_json{{"type", "object"}, {"properties", common_json::object()}};
    }

    static const common_chat_schema_object* object(const common_chat_schema* schema) {
        return schema ? dynamic_cast<const common_chat_schema_object*>(&resolved(*schema)) : nullptr;
    }

    static const common_chat_schema_property* property(const common_chat_schema* schema,
                                                       const std::string& name) {
        if (const common_chat_schema_object* in = object(schema))
            for (const common_chat_schema_property& property : in->properties)
                if (property.name == name) return &property;
        return nullptr;
    }

    /// Where one tool is called there and no other.
    const common_chat_schema* schema_of_tool(Id id) const {
        const std::set<std::string> names = parser_.all_named(id, Tag::TOOL_NAME);
        const auto tool = names.size() == 1 ? schemas_.find(*names.begin()) : schemas_.end();
        return tool == schemas_.end() ? nullptr : tool->second.root.get();
    }

    std::string new_name() { return fmt::format("argument-{}", ++names_); }

    /// The node or another in its place.
    Id written(Id id, Place place) {
        if (place.is_value)
            if (const std::optional<Id> strict = strict_value(id, *place.schema)) return *strict;
        const std::string kind = parser_.kind(id), tag = parser_.tag(id);
        if (kind == "schema" && !place.schema) is_complete_ = false;
        if (kind == "schema" && place.schema)
            return parser_.written_as(
                id, builder_.add_schema(parser_.at(id).at("name").get<std::string>(), *place.schema));
        if (kind == "gbnf") return id;  // has a rule of its own
        const bool is_between_marks = place.is_call && !place.is_text && kind == "until";
        if (is_between_marks) return parser_.written_as(id, short_text(end_of(id)));
        if (kind == "ref") return written(parser_.children(id).front(), place);
        if (tag == ElementTag::TOOL_ARG_ARRAY && place.schema) id = of_length(id, *place.schema);
        if (!place.schema && (tag == Tag::TOOL || kind == "rule")) place.schema = schema_of_tool(id);
        if (tag == Tag::TOOL) place.is_call = true;
        if (tag == Tag::TOOL_ARG || tag == ElementTag::TOOL_ARG_ITEM) {
            place.schema = schema_within(id, place.schema);
            place.is_value = place.schema != nullptr;
        } else if (tag == ElementTag::TOOL_ARG_OBJECT || tag == Tag::TOOL_ARGS) {
            place.is_value = false;
            const Id child = parser_.children(id).front();
            if (place.schema && parser_.kind(child) == "rule" &&
                parser_.at(child).at("name") == "gemma4-dict")
                return parser_.with_children(
                    id, {parser_.written_as(child, gemma_object(builder_, new_name(), *place.schema))});
            id = parser_.with_children(id, {ordered(child, place.schema)});
        }
        const bool is_text = tag == Tag::TOOL_ARG_STRING_VALUE || tag == Tag::TOOL_ARG_VALUE;
        place.is_text = place.is_text || is_text;
        // One for texts of all arguments.
        const bool is_shared = kind == "rule" && place.is_value && !parser_.find(id, Tag::TOOL_ARG) &&
                               parser_.find(id, Tag::TOOL_ARG_STRING_VALUE);
        if (is_shared) return written(parser_.children(id).front(), place);
        if (kind == "rule") return written_rule(id, place);
        const Ids before = parser_.children(id);
        Ids after;
        for (const Id child : before) after.push_back(written(child, place));
        if (kind == "sequence") leave_out_space(after);
        return before == after ? id : parser_.with_children(id, after);
    }

    /// What the parser reads over, the number of a call or the type of an argument: without a limit a model
    /// could go on with it for ever.
    static std::string short_text(const std::string& end) {
        return fmt::format("[^\\x{:02X}\\n]{{0,64}}", static_cast<unsigned char>(end.front()));
    }

    /// Rules are of one place, and may be within themselves.
    Id written_rule(Id id, Place place) {
        if (seen_.insert(id).second) parser_.set_children(id, {written(parser_.children(id).front(), place)});
        return id;
    }

    /// The schema of an argument, or of an item, within that one.
    const common_chat_schema* schema_within(Id id, const common_chat_schema* schema) const {
        if (!schema) return nullptr;
        if (parser_.tag(id) == Tag::TOOL_ARG) {
            const auto* found = property(schema, parser_.named(id, Tag::TOOL_ARG_NAME));
            return found ? found->schema.get() : nullptr;
        }
        const auto* list = dynamic_cast<const common_chat_schema_array*>(&resolved(*schema));
        return list ? list->items.get() : nullptr;
    }

    /// A list with as many items as its schema lets it have.
    Id of_length(Id id, const common_chat_schema& schema) {
        const auto* list = dynamic_cast<const common_chat_schema_array*>(&resolved(schema));
        const Id items = parser_.children(id).front();
        if (!list || parser_.kind(items) != "repetition") return id;
        common_json repeated = parser_.at(items);
        repeated["min_count"] = list->min_items;
        repeated["max_count"] = list->max_items;
        return parser_.with_children(id, {parser_.add(repeated)});
    }

    /// White space after a look ahead at what is none: the parser ends there.
    void leave_out_space(Ids& sequence) {
        for (std::size_t i = 1; i < sequence.size(); ++i)
            if (parser_.kind(sequence[i]) == "space" && looks_ahead_at_text(sequence[i - 1]))
                sequence[i] = parser_.add({{"type", "epsilon"}});
    }

    bool looks_ahead_at_text(Id id) const {
        const std::string kind = parser_.kind(id);
        const Ids children = parser_.children(id);
        if (kind == "and") {
            if (parser_.kind(children.front()) != "literal") return false;
            const std::string text = parser_.at(children.front()).at("literal").get<std::string>();
            return !text.empty() && !std::isspace(static_cast<unsigned char>(text.front()));
        }
        if (kind == "sequence") return !children.empty() && looks_ahead_at_text(children.back());
        if (kind == "choice")
            return !children.empty() &&
                   std::ranges::all_of(children, [&](Id child) { return looks_ahead_at_text(child); });
        const bool is_around = kind == "tag" || kind == "atomic" || kind == "rule";
        return is_around && looks_ahead_at_text(children.front());
    }

    /// A value that llama.cpp takes any text for, by its schema.
    std::optional<Id> strict_value(Id id, const common_chat_schema& schema) {
        const Id value = parser_.meaning(id);
        const std::string kind = parser_.kind(value);
        if (parser_.tag(value) == Tag::TOOL_ARG_VALUE)
            return parser_.written_as(value, builder_.add_schema(new_name(), schema));
        if (parser_.tag(value) == Tag::TOOL_ARG_STRING_VALUE) {
            const std::optional<Id> until = parser_.find(value, "until");
            if (!until) return std::nullopt;
            const auto text = text_rule(builder_, new_name(), schema, end_of(*until));
            return text ? std::optional(parser_.written_as(value, fmt::format("({})", *text))) : std::nullopt;
        }
        // Both hold the mark that ends the text.
        if ((kind != "ac" && kind != "gbnf") || !parser_.find(value, Tag::TOOL_ARG_STRING_VALUE))
            return std::nullopt;
        const std::optional<Id> holder = parser_.find(value, "ac");
        if (!holder) return std::nullopt;
        const std::string end = end_of(*holder);
        std::optional<std::string> text = text_rule(builder_, new_name(), schema, end);
        if (!text) return std::nullopt;
        if (kind == "gbnf") *text += other_values(schema);
        return parser_.written_as(value, fmt::format("({}) {}", *text, gbnf_format_literal(end)));
    }

    std::string end_of(Id id) const { return parser_.at(id).at("delimiters").at(0).get<std::string>(); }

    /// What is no text of a union whose parser tries JSON first.
    std::string other_values(const common_chat_schema& given) {
        const auto* any = dynamic_cast<const common_chat_schema_any_of*>(&resolved(given));
        std::string rules;
        if (any)
            for (const common_chat_schema_ptr& child : any->children)
                if (!child->may_be_string()) rules += " | " + builder_.add_schema(new_name(), *child);
        return rules;
    }

    /// The arguments that stand in a choice, each of which is one.
    std::optional<Ids> arguments_in(Id id) const {
        Ids all = parser_.kind(id) == "choice" ? parser_.children(id) : Ids{id};
        for (const Id argument : all)
            if (parser_.tag(parser_.meaning(argument)) != Tag::TOOL_ARG) return std::nullopt;
        return all;
    }

    /// Any arguments in any number, as llama.cpp has them in some templates, as all that are required and
    /// then any of the others.
    Id ordered(Id id, const common_chat_schema* schema) {
        const auto is_any_number = [&](Id node) {
            return parser_.kind(node) == "repetition" && parser_.at(node).at("min_count").get<int>() == 0 &&
                   parser_.at(node).at("max_count").get<int>() < 0;
        };
        Ids before, after;  // each argument
        Id first = id;
        if (is_any_number(id)) {
            const Id repeated = parser_.children(id).front();
            after = parser_.kind(repeated) == "sequence" ? parser_.children(repeated) : Ids{repeated};
            first = after.front();
            after.erase(after.begin());
        } else if (parser_.kind(id) == "sequence" && parser_.children(id).size() == 2 &&
                   is_any_number(parser_.children(id).back())) {
            const Id repeated = parser_.children(parser_.children(id).back()).front();
            before = parser_.kind(repeated) == "sequence" ? parser_.children(repeated) : Ids{repeated};
            first = parser_.children(id).front();
            if (before.back() != first) return id;
            before.pop_back();
        } else {
            return id;
        }
        const std::optional<Ids> arguments = arguments_in(first);
        return arguments ? in_order(*arguments, before, after, schema) : id;
    }

    Id in_order(const Ids& arguments, const Ids& before, const Ids& after, const common_chat_schema* schema) {
        Ids whole, others;
        const auto append = [](Ids& to, const Ids& more) { to.insert(to.end(), more.begin(), more.end()); };
        for (const Id argument : arguments) {
            const auto* found = property(schema, parser_.named(argument, Tag::TOOL_ARG_NAME));
            if (!found || !found->required) {
                others.push_back(argument);
                continue;
            }
            if (!whole.empty()) append(whole, before);
            whole.push_back(argument);
            append(whole, after);
        }
        if (others.empty()) return parser_.sequence(whole);
        const Id other = parser_.choice(others);
        if (whole.empty() && !before.empty()) whole.push_back(other);
        Ids more = before;
        more.push_back(other);
        append(more, after);
        whole.push_back(parser_.any_number_of(parser_.sequence(more)));
        return parser_.sequence(whole);
    }

    ParserText& parser_;
    const common_grammar_builder& builder_;
    std::map<std::string, common_chat_schema_document> schemas_;
    std::set<Id> seen_;
    int names_ = 0;
    bool is_complete_ = true;
};

/// Takes from each choice what begins with a text between marks of its own, if a call remains. An empty text
/// would stand before the call otherwise, and llama.cpp does not find the call of Functionary 3.2 behind one.
class CallsAlone {
public:
    explicit CallsAlone(ParserText& parser) : parser_(parser) {}

    /// False where there was none.
    bool write() {
        visit(parser_.root());
        return is_changed_;
    }

private:
    void visit(Id id) {
        if (!seen_.insert(id).second) return;
        if (parser_.kind(id) == "choice") {
            const Ids all = parser_.children(id);
            Ids calls;
            for (const Id child : all)
                if (!begins_with_marked_text(child)) calls.push_back(child);
            const auto has_call = [&](Id child) { return parser_.find(child, Tag::TOOL).has_value(); };
            if (calls.size() < all.size() && std::ranges::any_of(calls, has_call)) {
                parser_.set_children(id, calls);
                is_changed_ = true;
            }
        }
        for (const Id child : parser_.children(id)) visit(child);
    }

    bool begins_with_marked_text(Id id) const {
        Ids first;
        add_first(id, first);
        return first.size() == 2 && parser_.kind(first[0]) == "literal" &&
               parser_.tag(first[1]) == Tag::CONTENT;
    }

    /// The first two nodes of a sequence, of which sequences may be part.
    void add_first(Id id, Ids& first) const {
        if (parser_.kind(parser_.meaning(id)) != "sequence") return first.push_back(parser_.meaning(id));
        for (const Id child : parser_.children(parser_.meaning(id)))
            if (first.size() < 2) add_first(child, first);
    }

    ParserText& parser_;
    std::set<Id> seen_;
    bool is_changed_ = false;
};

}  // namespace

CallFormat with_strict_arguments(const common_chat_params& format, const std::vector<common_chat_tool>& tools,
                                 bool is_forced) {
    CallFormat whole{.grammar = format.grammar};
    if (format.parser.empty()) return whole;
    whole.parser.load(format.parser);
    ParserText parser(format.parser);
    const bool is_marked = parser.find(parser.root(), Tag::TOOL_ARG).has_value();
    const bool is_cut = is_forced && CallsAlone(parser).write();
    if (format.grammar.empty() || !(is_marked || is_cut || parser.has_rule("gemma4-dict"))) return whole;
    bool is_complete = false;
    std::string grammar = build_grammar([&](const common_grammar_builder& builder) {
        is_complete = StrictArguments(parser, tools, builder).write();
        common_peg_arena strict;
        strict.load(parser.text());
        strict.build_grammar(builder, format.grammar_lazy);
    });
    if (!is_complete) return whole;
    whole.grammar = std::move(grammar);
    whole.parser.load(parser.text());
    return whole;
}

}  // namespace headrace::llm
