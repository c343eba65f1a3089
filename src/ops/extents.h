#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/expression.h"
#include "ir/tensor_type.h"
#include "ops/infer.h"

/// Attributes that are extents: numbers, or expressions that a run's shapes give values.
namespace headrace::ops {

/// The numbers of an attribute whose extents are known.
inline std::vector<std::int64_t> numbers(const Shape& extents) {
    std::vector<std::int64_t> list;
    list.reserve(extents.size());
    for (const Dim& d : extents) list.push_back(d.size());
    return list;
}

inline Dim sum(const Dim& a, const Dim& b) {
    if (a.is(0)) return b;
    if (b.is(0)) return a;
    return Dim::of(Expression(a) + Expression(b));
}

/// Whether all are at least that; of open ones that becomes a condition.
inline bool all_at_least(const Operands& in, const Shape& extents, std::int64_t least) {
    return std::ranges::all_of(extents, [&](const Dim& d) { return at_least(in, d, least); });
}

}  // namespace headrace::ops
