#include "ops/infer.h"

#include <algorithm>

#include "ir/expression_broadcast.h"

namespace headrace::ops {

namespace {

/// The extent of two that broadcast, where neither is known to be 1 or the other.
Dim broadcast_extent(const Dim& a, const Dim& b) {
    if (!a.is_symbolic() || a.min_size() > 1) return a;
    if (!b.is_symbolic() || b.min_size() > 1) return b;
    return Dim::of(headrace::broadcast(Expression(a), Expression(b)));
}

}  // namespace

bool same_extent(const Operands& in, const Dim& a, const Dim& b) {
    const Answer answer = equals(a, b);
    if (answer == Answer::unknown) in.require(Condition::Kind::equal, a, b);
    return answer != Answer::no;
}

bool same_shape(const Operands& in, const Shape& a, const Shape& b) {
    return std::ranges::equal(a, b, [&](const Dim& x, const Dim& y) { return same_extent(in, x, y); });
}

bool at_least(const Operands& in, const Dim& a, const Dim& b) {
    const Answer answer = is_at_least(a, b);
    if (answer == Answer::unknown) in.require(Condition::Kind::at_least, a, b);
    return answer != Answer::no;
}

bool divides(const Operands& in, const Dim& part, const Dim& whole) {
    if (part.is(0)) return false;
    if (!part.is_symbolic() && !whole.is_symbolic()) return whole.size() % part.size() == 0;
    return same_extent(in, whole, Dim::of(Expression(part) * (Expression(whole) / Expression(part))));
}

bool broadcasts_to(const Operands& in, const Shape& from, const Shape& to) {
    if (from.size() > to.size()) return false;
    return std::equal(from.rbegin(), from.rend(), to.rbegin(), [&](const Dim& a, const Dim& b) {
        if (a.is(1)) return true;
        const Answer same = equals(a, b), one = equals(a, 1);
        if (same == Answer::yes || one == Answer::yes) return true;
        if (same == Answer::no && one == Answer::no) return false;
        in.require(Condition::Kind::expandable, a, b);
        return true;
    });
}

Result<Shape> broadcast(const Operands& in, const Shape& a, const Shape& b) {
    const Shape& longer = a.size() >= b.size() ? a : b;
    const Shape& shorter = a.size() >= b.size() ? b : a;
    Shape out = longer;
    const std::size_t shift = longer.size() - shorter.size();
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        Dim& d = out[i + shift];
        const Dim& other = shorter[i];
        if (d == other || other.is(1)) continue;
        if (d.is(1)) {
            d = other;
            continue;
        }
        const Answer same = equals(d, other);
        if (same == Answer::yes) continue;
        if (same == Answer::no && equals(d, 1) == Answer::no && equals(other, 1) == Answer::no)
            return invalid("Incompatible shapes {} and {}: extents {} and {} differ and neither is 1", str(a),
                           str(b), d.str(), other.str());
        in.require(Condition::Kind::broadcast, d, other);
        d = broadcast_extent(d, other);
    }
    return out;
}

Result<int> normalize_axis(std::int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) return invalid("Axis {} out of bounds for rank {}", axis, rank);
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<std::vector<int>> normalize_axes(std::span<const std::int64_t> axes, int rank) {
    std::vector<int> result;
    for (std::int64_t axis : axes) {
        HR_ASSIGN(const int a, normalize_axis(axis, rank));
        if (std::find(result.begin(), result.end(), a) != result.end())
            return invalid("Duplicate axis {}", axis);
        result.push_back(a);
    }
    std::sort(result.begin(), result.end());
    return result;
}

namespace {

/// Where the window's own extent is open, too.
Dim open_window_output(const Dim& size, const Window& w, bool round_up) {
    const Expression reach = (Expression(w.kernel) - 1) * w.dilation + 1;
    const Expression rest = Expression(size) + w.before + w.after - reach + (round_up ? w.stride - 1 : 0);
    return Dim::of(rest / w.stride + 1, {1, INT64_MAX});
}

}  // namespace

Result<Dim> window_output(std::string_view what, const Dim& size, const Window& w, bool round_up) {
    if (w.kernel.max_size() < 1 || w.stride < 1 || w.dilation < 1 || w.before < 0 || w.after < 0)
        return invalid(
            "{}: window {}, stride {} and dilation {} must be at least 1, padding {} and {} at least 0", what,
            w.kernel.str(), w.stride, w.dilation, w.before, w.after);
    if (w.kernel.is_symbolic()) return open_window_output(size, w, round_up);
    std::int64_t effective = 0, padding = 0;
    if (__builtin_mul_overflow(w.kernel.size() - 1, w.dilation, &effective) || effective == INT64_MAX ||
        __builtin_add_overflow(w.before, w.after, &padding))
        return invalid("{}: window {} with dilation {} and padding {}, {} overflows", what, w.kernel.str(),
                       w.dilation, w.before, w.after);
    ++effective;
    const std::int64_t round = round_up ? w.stride - 1 : 0;
    const auto extent = [&](std::int64_t n) { return (n + padding - effective + round) / w.stride + 1; };
    if (size.is_symbolic()) {
        const std::int64_t most = size.max_size(), largest = most > INT64_MAX / 4 ? most : extent(most);
        if (w.stride == 1 && padding + 1 == effective) return size;
        return Dim::of((Expression(size) + (padding - effective + round)) / w.stride + 1,
                       {std::max<std::int64_t>(1, extent(size.min_size())), largest});
    }
    if (padding > INT64_MAX - size.size() || size.size() + padding < effective)
        return invalid("{}: the window covers {} elements but the padded input has only {} + {} + {}", what,
                       effective, size.size(), w.before, w.after);
    return Dim(extent(size.size()));
}

Cost elementwise_cost(const Operands& in, std::span<const TensorType> out, double per_element) {
    Cost cost;
    for (int i = 0; i < in.size(); ++i)
        if (in.has(i)) cost.bytes += static_cast<double>(in[i].bytes());
    for (const TensorType& t : out) {
        cost.bytes += static_cast<double>(t.bytes());
        cost.flops += per_element * static_cast<double>(t.elements());
    }
    return cost;
}

}  // namespace headrace::ops
