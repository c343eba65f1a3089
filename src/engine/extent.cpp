#include "headrace/extent.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "headrace/error.h"
#include "ir/dim.h"
#include "ir/expression_words.h"

namespace headrace {
namespace {

std::optional<bool> truth(Answer answer) {
    if (answer == Answer::unknown) return std::nullopt;
    return answer == Answer::yes;
}

/// Whether a text has more symbols that were cut short than what it was made of: names may be long, too.
bool has_cut(const std::string& text, std::initializer_list<std::string> of) {
    constexpr std::size_t kMark = 4, kHash = 16;
    for (std::size_t at = text.find("...#"); at != std::string::npos; at = text.find("...#", at + 1)) {
        const std::string mark = text.substr(at, kMark + kHash);
        const auto has = [&](const std::string& part) { return part.find(mark) != std::string::npos; };
        if (is_cut(mark) && std::ranges::none_of(of, has)) return true;
    }
    return false;
}

/// Arithmetic that cannot be expressed makes a name of its own, which nothing would ever give a value.
Extent checked(const Expression& result, std::string_view op, const Extent& a, const Extent& b) {
    const auto names = result.names();
    const bool is_whole = names.size() == 1 && names[0] == result.str() && names[0].starts_with('(');
    if (is_whole || has_cut(result.str(), {a.str(), b.str()}))
        throw Exception(
            Code::invalid_argument,
            fmt::format("{:.80} {} {:.80}: an extent becomes a sum of more than 64 terms, 16 factors, "
                        "512 characters or numbers of 64 bits",
                        a.str(), op, b.str()));
    return Extent(Dim::of(result, Range{}));
}

void check_symbol(const std::string& text, std::int64_t least, std::int64_t most) {
    if (text.empty() || least > most)
        throw Exception(
            Code::invalid_argument,
            fmt::format("symbol '{}' has the range {}..{}; it needs a name and values", text, least, most));
}

Expression divisor_of(const Extent& a, const Extent& divisor) {
    if (divisor.number() == 0)
        throw Exception(Code::invalid_argument, fmt::format("{} is divided by 0", a.str()));
    return divisor.dim().expression();
}

std::vector<Expression> expressions(const std::vector<Extent>& of) {
    if (of.empty()) throw Exception(Code::invalid_argument, "the largest or smallest of no extents");
    std::vector<Expression> list;
    for (const Extent& e : of) list.push_back(e.dim().expression());
    return list;
}

}  // namespace

Extent::Extent(std::int64_t number) : dim_(std::make_shared<const Dim>(number)) {}
Extent::Extent(const Dim& dim) : dim_(std::make_shared<const Dim>(dim)) {}

Extent::Extent(const std::string& text, std::int64_t most, std::int64_t least)
    : Extent(Dim::symbolic(text, least, most)) {}

Extent Extent::symbol(const std::string& text, std::int64_t least, std::int64_t most) {
    check_symbol(text, least, most);
    return Extent(Dim::symbolic(text, least, most));
}

Extent Extent::named(const std::string& name, std::int64_t least, std::int64_t most) {
    check_symbol(name, least, most);
    return Extent(Dim::named(name, least, most));
}

std::optional<std::int64_t> Extent::number() const {
    return dim_->is_symbolic() ? std::nullopt : std::optional(dim_->size());
}
std::string Extent::str() const { return dim_->str(); }
std::int64_t Extent::least() const { return dim_->min_size(); }
std::int64_t Extent::most() const { return dim_->max_size(); }

Extent Extent::operator+(const Extent& other) const {
    return checked(dim_->expression() + other.dim_->expression(), "+", *this, other);
}
Extent Extent::operator-(const Extent& other) const {
    return checked(dim_->expression() - other.dim_->expression(), "-", *this, other);
}
Extent Extent::operator*(const Extent& other) const {
    return checked(dim_->expression() * other.dim_->expression(), "*", *this, other);
}
Extent Extent::divided_down(const Extent& divisor) const {
    return checked(dim_->expression() / divisor_of(*this, divisor), "//", *this, divisor);
}
Extent Extent::divided_up(const Extent& divisor) const {
    return checked(dim_->expression().divided_up(divisor_of(*this, divisor)), "^/", *this, divisor);
}
Extent Extent::rest(const Extent& divisor) const {
    return checked(dim_->expression() % divisor_of(*this, divisor), "%", *this, divisor);
}
Extent Extent::largest(const std::vector<Extent>& of) {
    return checked(Expression::largest(expressions(of)), "max", of.front(), of.back());
}
Extent Extent::smallest(const std::vector<Extent>& of) {
    return checked(Expression::least(expressions(of)), "min", of.front(), of.back());
}

bool Extent::operator==(const Extent& other) const { return *dim_ == *other.dim_; }
std::optional<bool> Extent::equals(const Extent& other) const {
    return truth(headrace::equals(*dim_, *other.dim_));
}
std::optional<bool> Extent::is_less(const Extent& other) const {
    const auto at_least = truth(is_at_least(*dim_, *other.dim_));
    return at_least ? std::optional(!*at_least) : std::nullopt;
}

std::vector<std::string> Extent::symbols() const { return dim_->expression().names(); }

std::vector<std::string> Extent::names() const {
    std::vector<std::string> names = symbols();
    for (std::string& name : names) name = name_spelled(name);
    return names;
}

std::vector<std::string> Extent::told() const {
    if (!dim_->is_symbolic()) return {};
    std::vector<std::string> names{str()};
    if (const auto line = dim_->expression().line(); line && line->name != names[0])
        names.push_back(line->name);
    return names;
}

Extent Extent::substituted(const std::map<std::string, Extent>& instead) const {
    const auto find = [&](const std::string& name) -> std::optional<Expression> {
        const auto it = instead.find(name);
        return it == instead.end() ? std::nullopt : std::optional(it->second.dim_->expression());
    };
    return Extent(Dim::of(dim_->expression().substituted(find), {least(), most()}));
}

std::optional<std::int64_t> Extent::value(const std::map<std::string, std::int64_t>& symbols) const {
    const auto find = [&](const std::string& name) -> std::optional<Expression> {
        const auto it = symbols.find(name);
        return it == symbols.end() ? std::nullopt : std::optional(Expression(it->second));
    };
    return dim_->expression().substituted(find).number();
}

std::vector<Extent::Term> Extent::terms() const {
    std::vector<Term> list;
    for (const auto& [factor, parts] : dim_->expression().terms()) {
        list.push_back({factor, {}});
        for (const Expression& part : parts) list.back().of.emplace_back(Dim::of(part, Range{}));
    }
    return list;
}

}  // namespace headrace
