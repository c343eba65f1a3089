#pragma once
#include <common/chat-peg-parser.h>
#include <common/json.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::llm {

/// A parser as llama.cpp writes it down: nodes by their number, of which a few are rules with names.
class ParserText {
public:
    using Id = std::size_t;
    using Ids = std::vector<Id>;

    explicit ParserText(const std::string& text) : whole_(common_json::parse(text)) {}

    std::string text() const { return whole_.dump(); }
    Id size() const { return whole_.at("parsers").size(); }
    Id root() const { return whole_.at("root").get<Id>(); }
    void set_root(Id id) { whole_["root"] = id; }
    const common_json& at(Id id) const { return whole_.at("parsers").at(id); }
    std::string kind(Id id) const { return at(id).at("type").get<std::string>(); }

    bool has_rule(const std::string& name) const { return whole_.at("rules").contains(name); }

    std::string tag(Id id) const { return kind(id) == "tag" ? at(id).at("tag").get<std::string>() : ""; }

    Ids children(Id id) const {
        const common_json& node = at(id);
        if (node.contains("children")) return node.at("children").get<Ids>();
        if (node.contains("child")) return {node.at("child").get<Id>()};
        if (kind(id) == "ref") return {whole_.at("rules").at(node.at("name").get<std::string>()).get<Id>()};
        return {};
    }

    void set_children(Id id, const Ids& children) {
        common_json& node = whole_["parsers"][id];
        if (node.contains("children"))
            node["children"] = children;
        else
            node["child"] = children.front();
    }

    Id add(common_json node) {
        whole_["parsers"].push_back(node);
        return size() - 1;
    }

    Id with_children(Id id, const Ids& children) {
        const Id copy = add(at(id));
        set_children(copy, children);
        return copy;
    }

    Id literal(const std::string& text) { return add({{"type", "literal"}, {"literal", text}}); }
    Id sequence(const Ids& children) { return add({{"type", "sequence"}, {"children", children}}); }
    Id choice(const Ids& children) { return add({{"type", "choice"}, {"children", children}}); }

    Id any_number_of(Id child) {
        return add({{"type", "repetition"}, {"child", child}, {"min_count", 0}, {"max_count", -1}});
    }

    /// The node, which is written by that rule's right side.
    Id written_as(Id id, const std::string& rule) {
        return add({{"type", "gbnf"}, {"child", id}, {"grammar", rule}});
    }

    /// What a rule or a reference to one is.
    Id meaning(Id id) const {
        while (kind(id) == "rule" || kind(id) == "ref") id = children(id).front();
        return id;
    }

    /// The first node within another that has the tag, or is of that kind.
    std::optional<Id> find(Id id, std::string_view wanted) const {
        Ids found;
        std::set<Id> seen;
        find(id, wanted, found, seen);
        return found.empty() ? std::nullopt : std::optional(found.front());
    }

    /// The literals that such tags stand around.
    std::set<std::string> all_named(Id id, std::string_view tag) const {
        Ids found;
        std::set<Id> seen;
        find(id, tag, found, seen);
        std::set<std::string> names;
        for (const Id tagged : found)
            if (const std::optional<Id> text = find(tagged, "literal"))
                names.insert(at(*text).at("literal").get<std::string>());
        return names;
    }

    /// The first of them.
    std::string named(Id id, std::string_view tag) const {
        const std::optional<Id> found = find(id, tag);
        const std::set<std::string> names = found ? all_named(*found, tag) : std::set<std::string>();
        return names.empty() ? "" : *names.begin();
    }

private:
    void find(Id id, std::string_view wanted, Ids& found, std::set<Id>& seen) const {
        if (!seen.insert(id).second) return;
        if (tag(id) == wanted || kind(id) == wanted) found.push_back(id);
        for (const Id child : children(id)) find(child, wanted, found, seen);
    }

    common_json whole_;
};

}  // namespace headrace::llm
