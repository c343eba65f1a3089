#include "ir/dim.h"

#include <algorithm>

#include "ir/expression_words.h"

namespace headrace {
namespace {

constexpr std::int64_t kNoLimit = INT64_MAX;

/// The range of x where that of factor * x + offset is known.
Range solved(const Expression::Line& line, Range whole) {
    if (line.factor <= 0 || line.offset < -INT32_MAX || line.offset > INT32_MAX) return kAnyExtent;
    const std::int64_t least = std::max<std::int64_t>(0, whole.least - line.offset);
    if (whole.most == kNoLimit || whole.most < line.offset) return {least / line.factor, kNoLimit};
    return {least / line.factor + (least % line.factor != 0 ? 1 : 0),
            (whole.most - line.offset) / line.factor};
}

Expression with_ranges_of(const Expression& expression, const Expression::RangeOf& range_of) {
    return expression.substituted([&](const std::string& name) -> std::optional<Expression> {
        const auto range = range_of(name);
        return range ? std::optional(Expression::symbol(name, *range)) : std::nullopt;
    });
}

}  // namespace

Expression::Expression(const Dim& extent) : Expression(extent.expression()) {}

Dim Dim::symbolic(std::string text, std::int64_t min, std::int64_t max) {
    Expression expression = Expression::parse(shortened(std::move(text)));
    if (const auto line = expression.line()) {
        const Range range = solved(*line, {min, max});
        if (range.least <= range.most)
            expression = with_ranges_of(expression, [&](const std::string&) { return std::optional(range); });
    }
    Dim d;
    std::string form = shortened(expression.str());
    d.open_ = std::make_shared<const Open>(Open{std::move(expression), std::move(form), {min, max}});
    return d;
}

Dim Dim::named(std::string_view name, std::int64_t min, std::int64_t max) {
    Dim d;
    Expression expression = Expression::named(name, {min, max});
    std::string form = expression.str();
    d.open_ = std::make_shared<const Open>(Open{std::move(expression), std::move(form), {min, max}});
    return d;
}

std::string Dim::name() const {
    const bool is_symbol = open_ && open_->expression.names() == std::vector{open_->text};
    return is_symbol ? name_spelled(open_->text) : str();
}

Dim Dim::of(const Expression& expression, Range known) {
    if (const auto number = expression.number()) return Dim(*number);
    const Range own = expression.range();
    const Range both{std::max(own.least, known.least), std::min(own.most, known.most)};
    Dim d;
    d.open_ = std::make_shared<const Open>(
        Open{expression, shortened(expression.str()), both.least <= both.most ? both : known});
    return d;
}

Dim Dim::with_ranges(const Expression::RangeOf& range_of) const {
    if (!open_) return *this;
    return of(with_ranges_of(open_->expression, range_of), open_->range);
}

Answer equals(const Dim& a, const Dim& b) {
    if (!a.is_symbolic() && !b.is_symbolic()) return a.size() == b.size() ? Answer::yes : Answer::no;
    if (a == b) return Answer::yes;
    if (a.min_size() > b.max_size() || b.min_size() > a.max_size()) return Answer::no;
    return a.expression().equals(b.expression());
}

Answer is_at_least(const Dim& a, const Dim& b) {
    if (a.min_size() >= b.max_size()) return Answer::yes;
    if (a.max_size() < b.min_size()) return Answer::no;
    return a.expression().is_at_least(b.expression());
}

}  // namespace headrace
