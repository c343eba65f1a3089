#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/dim.h"

namespace headrace {

/// Values of symbols, and of expressions that no symbol gives.
using SymbolBindings = std::map<std::string, std::int64_t>;

/// The extent with values in place of symbols: a number where all of them have one.
Dim bound(const Dim& extent, const SymbolBindings& bindings);

/// What a node needs of two extents, where their expressions leave it open: numbers decide when shapes are
/// bound.
struct Condition {
    enum class Kind : std::uint8_t {
        equal,       ///< left = right
        at_least,    ///< left >= right
        broadcast,   ///< left = right, or either is 1
        expandable,  ///< left = right, or left is 1
    };
    Kind kind = Kind::equal;
    Dim left, right;
    std::string where;  ///< the node's title

    /// "n = m", "n >= 2", "n = m or 1 in either", "n = m or n = 1"
    std::string str() const;
    Answer holds(const SymbolBindings& bindings) const;
    /// The error where it does not hold: the node, both extents with the values that they took, the remedy.
    Status check(const SymbolBindings& bindings) const;
    bool operator==(const Condition&) const = default;
};

inline constexpr int kConditionKinds = 4;

}  // namespace headrace
