#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/expression.h"

/// The inside of expressions, for their rules and their bounds.
namespace headrace {

/// What counts as a symbol: one, or a function of expressions.
struct Expression::Atom {
    enum class Kind { name, quotient, largest, least };
    std::string text;
    Kind kind = Kind::name;
    std::vector<Expression> of;
    Range range = kAnyExtent;
};

struct Expression::Bounds {
    /// The values that a quotient or an extreme of these operands can have.
    static Range of_atom(Atom::Kind kind, const std::vector<Expression>& of);
    static Range of(const Expression& expression);
};

}  // namespace headrace
