#include "ir/condition.h"

#include <optional>

namespace headrace {
namespace {

std::string valued(const Dim& extent, const Dim& value) {
    return extent.is_symbolic() ? fmt::format("{} = {}", extent.str(), value.str()) : extent.str();
}

}  // namespace

Dim bound(const Dim& d, const SymbolBindings& bindings) {
    if (!d.is_symbolic()) return d;
    if (const auto whole = bindings.find(d.text()); whole != bindings.end()) return whole->second;
    const auto size = d.number([&](const std::string& name) -> std::optional<Expression> {
        const auto it = bindings.find(name);
        return it == bindings.end() ? std::nullopt : std::optional(Expression(it->second));
    });
    return size ? Dim(*size) : d;
}

std::string Condition::str() const {
    const std::string a = left.str(), b = right.str();
    switch (kind) {
        case Kind::equal: return fmt::format("{} = {}", a, b);
        case Kind::at_least: return fmt::format("{} >= {}", a, b);
        case Kind::broadcast: return fmt::format("{} = {} or either is 1", a, b);
        default: return fmt::format("{} = {} or {} is 1", a, b, a);
    }
}

Answer Condition::holds(const SymbolBindings& bindings) const {
    const Dim a = bound(left, bindings), b = bound(right, bindings);
    const Answer same = equals(a, b);
    if (kind == Kind::equal) return same;
    if (kind == Kind::at_least) return is_at_least(a, b);
    if (same == Answer::yes || a.is(1) || (kind == Kind::broadcast && b.is(1))) return Answer::yes;
    return a.is_symbolic() || b.is_symbolic() ? Answer::unknown : Answer::no;
}

Status Condition::check(const SymbolBindings& bindings) const {
    if (holds(bindings) != Answer::no) return success();
    const std::string a = valued(left, bound(left, bindings)), b = valued(right, bound(right, bindings));
    switch (kind) {
        case Kind::equal:
            return invalid("{}: the extents {} and {} must be equal; give inputs of shapes that make them so",
                           where, a, b);
        case Kind::at_least:
            return invalid("{}: the extent {} must be at least {}; give inputs of shapes that make it so",
                           where, a, b);
        case Kind::broadcast:
            return invalid(
                "{}: the extents {} and {} must be equal, or one of them 1; give inputs of shapes that make "
                "them so",
                where, a, b);
        default:
            return invalid("{}: the extent {} must be {}, or 1; give inputs of shapes that make it so", where,
                           a, b);
    }
}

}  // namespace headrace
