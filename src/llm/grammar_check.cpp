#include "llm/grammar_check.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <string>

namespace headrace::llm {
namespace {

constexpr size_t most_bytes = 256u << 10;
constexpr size_t most_rules = 5000;
constexpr int most_levels = 100;
constexpr uint64_t most_repetitions = 2000;  // llama.cpp's own limit, which it checks too late

bool in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class Scan {
public:
    explicit Scan(std::string_view source) : rest_(source) {}

    Status run() {
        while (!rest_.empty()) HR_TRY(take(rest_.front()));
        if (!defined_.contains("root"))
            return invalid("grammar: there is no rule 'root', with which it begins");
        for (const std::string_view name : used_)
            if (!defined_.contains(name))
                return invalid("grammar: the rule '{}' is used, and none of that name is defined", name);
        return success();
    }

private:
    Status take(char c) {
        if (in_name(c)) return take_name();
        if (c == '{') return take_repetition();
        if (c == '#')
            skip_to('\n');
        else if (c == '"')
            skip_text('"');
        else if (c == '[')
            skip_text(']');
        else if (c == '<')
            skip_to('>');  // a token
        else
            rest_.remove_prefix(1);
        level_ += (c == '(') - (c == ')' && level_ > 0);
        if (level_ > most_levels)
            return invalid(
                "grammar: brackets are nested deeper than {}; give the inner ones rules of their own",
                most_levels);
        return success();
    }

    void skip_to(char end) { rest_.remove_prefix(std::min(rest_.size(), rest_.find(end, 1))); }

    void skip_text(char end) {
        size_t at = 1;
        while (at < rest_.size() && rest_[at] != end) at += rest_[at] == '\\' ? 2 : 1;
        rest_.remove_prefix(std::min(rest_.size(), at + 1));
    }

    Status take_name() {
        const auto end = std::find_if_not(rest_.begin(), rest_.end(), in_name);
        const std::string_view name = rest_.substr(0, static_cast<size_t>(end - rest_.begin()));
        rest_.remove_prefix(name.size());
        const size_t next = rest_.find_first_not_of(" \t\r\n");
        const bool is_defined = next != std::string_view::npos && rest_.substr(next).starts_with("::=");
        (is_defined ? defined_ : used_).insert(name);
        if (defined_.size() > most_rules) return invalid("grammar: it has more than {} rules", most_rules);
        return success();
    }

    /// {m}, {m,} and {m,n}.
    Status take_repetition() {
        skip_blanks_and(1);
        while (!rest_.empty() && rest_.front() != '}') {
            uint64_t count = 0;
            const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), count);
            if (error == std::errc::result_out_of_range || count > most_repetitions)
                return invalid("grammar: something is repeated {} times, and {} are possible",
                               rest_.substr(0, static_cast<size_t>(end - rest_.data())), most_repetitions);
            skip_blanks_and(std::max<size_t>(1, static_cast<size_t>(end - rest_.data())));
        }
        rest_.remove_prefix(std::min<size_t>(rest_.size(), 1));
        return success();
    }

    void skip_blanks_and(size_t count) {
        rest_.remove_prefix(std::min(rest_.size(), count));
        rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of(" \t\r\n,")));
    }

    std::string_view rest_;
    std::set<std::string_view> defined_, used_;
    int level_ = 0;
};

}  // namespace

Status check_grammar(std::string_view source) {
    if (source.size() > most_bytes)
        return invalid("grammar: it has {} bytes, and {} are allowed", source.size(), most_bytes);
    if (source.starts_with("%llguidance"))
        return invalid("grammar: llguidance is not built in; give a grammar in GBNF");
    return Scan(source).run();
}

}  // namespace headrace::llm
