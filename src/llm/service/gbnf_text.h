#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "base/take_until.h"

namespace headrace::llm {

/// A literal, a class of characters, a count of repetitions, a name, or one other character of a rule in
/// GBNF.
inline std::size_t end_of_piece(std::string_view rule, std::size_t from) {
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

/// The rule with each of its pieces replaced by what replace(piece) gives.
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
        const std::string_view line = take_until(grammar, '\n');
        visit(line);
    }
}

inline constexpr std::string_view kIsMadeOf = " ::= ";  ///< between a rule's name and what it is

inline std::string_view name_of_rule(std::string_view line) { return line.substr(0, line.find(kIsMadeOf)); }

}  // namespace headrace::llm
