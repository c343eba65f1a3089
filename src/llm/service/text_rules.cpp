#include "llm/service/text_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <string_view>
#include <vector>

#include "llm/service/gbnf_text.h"

namespace headrace::llm {
namespace {

using SchemaKind = common_chat_schema;

constexpr std::string_view kQuote = R"("\"")";  // a rule's literal for "
constexpr int kMostReferences = 16;             // one to another; beyond them is a circle
constexpr int kDeepestUnion = 8;

template <class Node>
const Node& as(const common_chat_schema& schema) {
    return static_cast<const Node&>(schema);
}

std::string one_of(const std::vector<std::string>& rules) {
    return fmt::format("{}", fmt::join(rules, " | "));
}

/// The values of an enum or a const.
std::vector<common_json> allowed_values(const common_chat_schema& schema) {
    if (schema.kind() == SchemaKind::KIND_ENUM) return as<common_chat_schema_enum>(schema).values;
    return {as<common_chat_schema_const>(schema).value};
}

/// llama.cpp's rule for the string in JSON, without its quotes; the characters that lengths count are any but
/// the first of the end.
std::string unquoted(const common_grammar_builder& builder, const std::string& name,
                     const common_chat_schema& schema, const std::string& end) {
    std::string quoted;
    const std::string grammar =
        build_grammar([&](const common_grammar_builder& own) { quoted = own.add_schema(name, schema); });
    const std::string one_character = fmt::format("[^\\x{:02X}]", static_cast<unsigned char>(end.front()));
    std::set<std::string, std::less<>> names;
    for_each_line(grammar, [&](std::string_view line) { names.emplace(name_of_rule(line)); });
    const auto own_name = [&](std::string_view rule) { return fmt::format("{}-of-{}", rule, name); };
    std::string text;
    for_each_line(grammar, [&](std::string_view line) {
        const std::string_view rule = name_of_rule(line);
        const bool is_whole = rule == quoted;
        std::string right =
            with_names(line.substr(rule.size() + kIsMadeOf.size()), [&](std::string_view piece) {
                if (is_whole && piece == kQuote) return std::string();
                if (piece == "char") return one_character;
                return names.contains(piece) ? own_name(piece) : std::string(piece);
            });
        if (is_whole)
            text = std::move(right);
        else if (rule != "char")
            builder.add_rule(own_name(rule), right);
    });
    return text;
}

bool is_free(const common_chat_schema_string& text) {
    const bool is_anchored = text.pattern.starts_with('^') && text.pattern.ends_with('$');
    return !is_anchored && text.format == SchemaKind::FORMAT_NONE && text.min_length == 0 &&
           text.max_length < 0;
}

/// An object, an array or a value as Gemma 4 writes it. The names of llama.cpp's rules for values of any kind
/// are in the grammar.
class GemmaRules {
public:
    GemmaRules(const common_grammar_builder& builder) : builder_(builder) {}

    std::string value(const std::string& name, const common_chat_schema& given) {
        const common_chat_schema& schema = resolved(given);
        if (!begun_.insert(&schema).second) return "gemma4-value";  // it holds itself
        std::string right = value_of_kind(name, schema);
        begun_.erase(&schema);
        return right;
    }

private:
    std::string value_of_kind(const std::string& name, const common_chat_schema& schema) {
        switch (schema.kind()) {
            case SchemaKind::KIND_STRING: return string(name, schema);
            case SchemaKind::KIND_ENUM:
            case SchemaKind::KIND_CONST: return constants(schema);
            case SchemaKind::KIND_OBJECT: return object(name, as<common_chat_schema_object>(schema));
            case SchemaKind::KIND_ARRAY: return array(name, as<common_chat_schema_array>(schema));
            case SchemaKind::KIND_ANY_OF: return any_of(name, as<common_chat_schema_any_of>(schema));
            case SchemaKind::KIND_NULL:
            case SchemaKind::KIND_BOOLEAN:
            case SchemaKind::KIND_NUMBER:
            case SchemaKind::KIND_INTEGER: return builder_.add_schema(name, schema);
            default: return "gemma4-value";
        }
    }

    std::string rule(const std::string& name, const std::string& right) {
        return builder_.add_rule(name, right);
    }

    std::string string(const std::string& name, const common_chat_schema& schema) {
        const std::optional<std::string> text = text_rule(builder_, name, schema, kMark);
        const std::string mark = gbnf_format_literal(kMark);
        return text ? rule(name, fmt::format("{} ({}) {}", mark, *text, mark)) : "gemma4-string";
    }

    static std::string constants(const common_chat_schema& schema) {
        std::vector<std::string> rules;
        for (const common_json& value : allowed_values(schema)) {
            if (value.is_object() || value.is_array()) return "gemma4-value";
            const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
            rules.push_back(gbnf_format_literal(value.is_string() ? kMark + text + kMark : text));
        }
        return fmt::format("({})", one_of(rules));
    }

    std::string any_of(const std::string& name, const common_chat_schema_any_of& schema) {
        std::vector<std::string> rules;
        for (std::size_t i = 0; i < schema.children.size(); ++i)
            rules.push_back(value(fmt::format("{}-{}", name, i), *schema.children[i]));
        return fmt::format("({})", one_of(rules));
    }

    std::string array(const std::string& name, const common_chat_schema_array& schema) {
        const std::string item = value(name + "-item", *schema.items);
        const int least = schema.min_items, most = schema.max_items;
        if (most == 0) return R"("[]")";
        const std::string more = fmt::format("{{{},{}}}", std::max(least - 1, 0),
                                             most < 0 ? std::string() : std::to_string(most - 1));
        const std::string items = fmt::format(R"({} ("," {}){})", item, item, more);
        return rule(name, fmt::format(R"("[" {} "]")", least > 0 ? items : fmt::format("({})?", items)));
    }

    /// The required ones in their order, and of the others, in theirs, any.
    std::string object(const std::string& name, const common_chat_schema_object& schema) {
        if (schema.properties.empty()) return schema.additional_properties ? "gemma4-dict" : R"("{}")";
        std::vector<std::string> required, others;
        for (const common_chat_schema_property& property : schema.properties) {
            const std::string own = fmt::format("{}-{}", name, property.name);
            const std::string right = value(own, *property.schema);
            const std::string pair = rule(own + "-pair", fmt::format("{} {}", key(property.name), right));
            (property.required ? required : others).push_back(pair);
        }
        std::string optional;
        for (const std::string& other : others) optional += fmt::format(R"( ("," {})?)", other);
        if (!required.empty())
            return rule(name, fmt::format(R"("{{" {}{} "}}")", fmt::join(required, R"( "," )"), optional));
        std::vector<std::string> beginnings;  // with each of the optional ones as the first
        for (std::size_t first = 0; first < others.size(); ++first) {
            std::string whole = others[first];
            for (std::size_t i = first + 1; i < others.size(); ++i)
                whole += fmt::format(R"( ("," {})?)", others[i]);
            beginnings.push_back(std::move(whole));
        }
        return rule(name, fmt::format(R"("{{" ({})? "}}")", one_of(beginnings)));
    }

    static std::string key(const std::string& name) { return gbnf_format_literal(name + ":"); }

    inline static const std::string kMark = R"(<|"|>)";

    const common_grammar_builder& builder_;
    std::set<const common_chat_schema*> begun_;  ///< those around the one in hand
};

}  // namespace

const common_chat_schema& resolved(const common_chat_schema& schema) {
    const common_chat_schema* found = &schema;
    for (int i = 0; i < kMostReferences && found->kind() == SchemaKind::KIND_REF; ++i) {
        const common_chat_schema* target = as<common_chat_schema_ref>(*found).target;
        if (!target) break;
        found = target;
    }
    return *found;
}

std::optional<std::string> text_rule(const common_grammar_builder& builder, const std::string& name,
                                     const common_chat_schema& given, const std::string& end, int depth) {
    if (depth > kDeepestUnion) return std::nullopt;  // unions can hold themselves
    const common_chat_schema& schema = resolved(given);
    std::vector<std::string> rules;
    switch (schema.kind()) {
        case SchemaKind::KIND_STRING:
            if (is_free(as<common_chat_schema_string>(schema))) return std::nullopt;
            return unquoted(builder, name, schema, end);
        case SchemaKind::KIND_ENUM:
        case SchemaKind::KIND_CONST:
            for (const common_json& value : allowed_values(schema))
                if (value.is_string() && value.get<std::string>().find(end) == std::string::npos)
                    rules.push_back(gbnf_format_literal(value.get<std::string>()));
            break;
        case SchemaKind::KIND_ANY_OF:
            for (const common_chat_schema_ptr& child : as<common_chat_schema_any_of>(schema).children) {
                if (!child->may_be_string()) continue;
                std::optional<std::string> rule =
                    text_rule(builder, fmt::format("{}-{}", name, rules.size()), *child, end, depth + 1);
                if (!rule) return std::nullopt;
                rules.push_back(*std::move(rule));
            }
            break;
        default: return std::nullopt;
    }
    if (rules.empty()) return std::nullopt;
    return one_of(rules);
}

std::string gemma_object(const common_grammar_builder& builder, const std::string& name,
                         const common_chat_schema& schema) {
    return GemmaRules(builder).value(name, schema);
}

}  // namespace headrace::llm
