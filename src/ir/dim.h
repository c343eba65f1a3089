#pragma once
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/expression.h"

namespace headrace {

/// One extent of a shape: a number, or an expression of symbols that are known only at run time, within
/// [min_size, max_size]. A number costs no allocation.
class Dim {
public:
    Dim(std::int64_t size = 0) : size_(size) {}
    /// A symbol, or an expression of symbols as text, which lies within [min, max]: of a symbol, and where it
    /// determines one, that is the symbol's range, too.
    static Dim symbolic(std::string text, std::int64_t min = 1, std::int64_t max = INT64_MAX);
    /// A symbol of any name, also one that looks like an expression.
    static Dim named(std::string_view name, std::int64_t min = 1, std::int64_t max = INT64_MAX);
    /// The extent that an expression says, of which `known` holds as well.
    static Dim of(const Expression& expression, Range known = kAnyExtent);

    bool is_symbolic() const { return open_ != nullptr; }
    /// The extent; only of a concrete one.
    std::int64_t size() const {
        assert(!is_symbolic());
        return size_;
    }
    Expression expression() const { return open_ ? open_->expression : Expression(size_); }
    /// The extent, or the least value that it can have.
    std::int64_t min_size() const { return open_ ? open_->range.least : size_; }
    /// The extent, or the largest value that it can have.
    std::int64_t max_size() const { return open_ ? open_->range.most : size_; }
    std::string str() const { return open_ ? open_->text : std::to_string(size_); }
    /// A symbol's name as it was given; else str().
    std::string name() const;
    /// The expression as text; only of a symbolic one.
    const std::string& text() const {
        assert(is_symbolic());
        return open_->text;
    }
    /// The number that it is with expressions in place of names, where that is one.
    std::optional<std::int64_t> number(const Expression::Find& find) const {
        return open_ ? open_->expression.substituted(find).number() : size_;
    }
    /// The same extent, with the ranges that its symbols have elsewhere.
    Dim with_ranges(const Expression::RangeOf& range_of) const;

    /// The same form, and so equal for all values. Whether others are equal is what equals() tells.
    bool operator==(const Dim& other) const {
        if (!open_ || !other.open_) return open_ == other.open_ && size_ == other.size_;
        return open_ == other.open_ || open_->text == other.open_->text;
    }
    bool is(std::int64_t size) const { return !is_symbolic() && size_ == size; }

private:
    struct Open {
        Expression expression;
        std::string text;
        Range range;
    };

    std::int64_t size_;
    std::shared_ptr<const Open> open_;
};

Answer equals(const Dim& a, const Dim& b);
Answer is_at_least(const Dim& a, const Dim& b);

}  // namespace headrace
