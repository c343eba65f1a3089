#include "doors/onnx/reading/numbers.h"

#include <numeric>

namespace headrace::onnx {
namespace {

constexpr std::int64_t kMostCounted = 4096;  // extents that one operand gives
constexpr std::string_view kTimes = "how often an axis is given";

/// An element of a list; one that a run tells is counted once.
Dim extent_of(OpWriter& g, const Item& item) {
    if (!item.told) return item.above;
    const auto [at, is_new] = g.told.try_emplace(item.told.get(), item.told, Dim());
    if (is_new) {
        const Dim counted = extents_of(g, g.reshape(item.told, {1})).at(0);
        g.told.at(item.told.get()).second = counted;
    }
    return g.told.at(item.told.get()).second;
}

}  // namespace

Numbers::Numbers(OpWriter& g, const Operand& x) : g_(&g), x_(g.cast(x, ElementType::i64)) {}
Numbers::Numbers(OpWriter& g, const Shape& extents) : g_(&g), x_(known(extents)) {}
Numbers::Numbers(OpWriter& g, const std::vector<std::int64_t>& list) : g_(&g), x_(known(list)) {}
Numbers::Numbers(OpWriter& g, std::int64_t number) : g_(&g), x_(known(number, ElementType::i64)) {}

Numbers Numbers::op(std::string_view name, const Numbers& other) const {
    return {*g_, g_->op(name, {x_, other.x_}), AsItIs()};
}

Numbers Numbers::choose(const Numbers& yes, const Numbers& no) const {
    return {*g_, g_->op("where", {x_, yes.x_, no.x_}), AsItIs()};
}

Numbers Numbers::at(const Numbers& places) const {
    return {*g_, g_->op("gather", {x_, places.x_}, {{"axis", 0}}), AsItIs()};
}

Numbers Numbers::shaped(const Shape& shape) const { return {*g_, g_->reshape(x_, shape), AsItIs()}; }

Numbers Numbers::reduced(std::string_view name, std::int64_t axis) const {
    return {*g_, g_->op(fmt::format("reduce_{}", name), {x_}, {{"axes", std::vector{axis}}}), AsItIs()};
}

Numbers Numbers::with_at(const Numbers& places, const Numbers& values) const {
    return {*g_, g_->op("scatter_elements", {x_, places.x_, values.x_}, {{"axis", 0}}), AsItIs()};
}

Numbers Numbers::checked(std::string_view what, std::int64_t least, std::optional<Dim> most) const {
    return {*g_, checked_numbers(*g_, x_, what, least, std::move(most)), AsItIs()};
}

Shape Numbers::extents() const { return extents_of(*g_, x_); }

Operand checked_numbers(OpWriter& g, const Operand& x, std::string_view what, std::int64_t least,
                        std::optional<Dim> most) {
    const Shape limit = most ? Shape{*most} : Shape{};
    return g.op("checked_numbers", {x}, {{"what", std::string(what)}, {"least", least}, {"most", limit}});
}

bool is_known(const Operand& x) { return !x || !x->is_told(); }

std::int64_t told_count(OpWriter& g, const Operand& list, std::string_view what) {
    const std::int64_t count = g.fixed(g.size(list), fmt::format("the number of {}", what));
    invalid_if(count > kMostDimensions, "{} {} are given; tensors have {} dimensions at most", count, what,
               kMostDimensions);
    return count;
}

Shape extents_of(OpWriter& g, const Operand& x) {
    Shape list;
    if (x->is_known()) {
        for (std::int64_t i = 0; i < x->known->count(); ++i)
            list.push_back(x->has_numbers() ? Dim(x->integer(i)) : extent_of(g, x->item(i)));
        return list;
    }
    const Dim count = product_of(g.shape(x));
    if (count.is_symbolic())
        throw Refused(fmt::format("it is told by a tensor of the shape {}, whose number of elements is open",
                                  shortened_text(str(g.shape(x)))),
                      "Fix the dimension with dimensions={...} (--dimension NAME=N)");
    invalid_if(count.size() > kMostCounted, "{} extents are asked for; {} are the most", count.size(),
               kMostCounted);
    for (std::int64_t i = 0; i < count.size(); ++i) list.push_back(g.counted());
    if (!list.empty())
        g.ops("read_extents", {g.reshape(g.cast(x, ElementType::i64), {count})}, {{"counts", list}});
    return list;
}

Shape extents_among(OpWriter& g, const Numbers& whole, const std::vector<std::optional<Item>>& sure) {
    std::vector<std::int64_t> open;
    for (std::size_t i = 0; i < sure.size(); ++i)
        if (!sure[i]) open.push_back(static_cast<std::int64_t>(i));
    const Shape counted = open.empty() ? Shape{} : whole.at(open).extents();
    std::size_t next = 0;
    Shape list;
    for (const auto& item : sure) list.push_back(item ? extent_of(g, *item) : counted.at(next++));
    return list;
}

Operand list_of(OpWriter& g, const Operand& x, std::int64_t count) {
    const Shape own = g.shape(x);
    return own.size() == 1 && own[0].is_symbolic() ? g.reshape(x, {count}) : x;
}

Shape dims_of(OpWriter& g, const Node& node, std::size_t index, std::string_view what,
              std::optional<std::size_t> count) {
    const Operand x = node.operand(index);
    invalid_if(g.rank(x) > 1, "{} (input {}) has {} dimensions; it is a list", what, index, g.rank(x));
    if (is_known(x)) return node.dims(index, what);
    return extents_of(g, count ? list_of(g, x, static_cast<std::int64_t>(*count)) : x);
}

std::pair<Operand, Shape> around(OpWriter& g, const Operand& x, const Numbers& axis) {
    const Shape sizes = g.shape(x);
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const Numbers own(g, sizes), places(g, counted_list(rank));
    const Numbers column = counted_from_front(axis, rank).shaped({1});
    std::vector<Operand> parts;
    for (const Numbers& part :
         {(places < column).choose(own, 1).reduced("product"), own.at(column).shaped({}),
          (places > column).choose(own, 1).reduced("product")})
        parts.push_back(g.reshape(part.x(), {1}));
    return {g.reshape(x, extents_of(g, g.concat(parts, 0))), sizes};
}

Numbers axes_told(OpWriter& g, const Operand& axes, std::int64_t rank) {
    const Shape sizes = g.shape(axes);
    invalid_if(sizes.size() > 1, "the axes have the shape {}; they are a list", str(sizes));
    const Numbers column = counted_from_front(Numbers(g, axes), rank).shaped({product_of(sizes), 1});
    const Numbers times = column.equals(Numbers(g, counted_list(rank))).choose(1, 0).reduced("sum");
    return times.checked(kTimes, 0, 1) > 0;
}

Numbers distinct(const Numbers& axes) {
    const Dim count = product_of(axes.g().shape(axes.x()));
    const Numbers times = axes.shaped({count, 1}).equals(axes).choose(1, 0).reduced("sum");
    return axes * times.checked(kTimes, 1, 1);
}

Numbers others(OpWriter& g, const Numbers& chosen, std::int64_t rank, std::int64_t count) {
    const Numbers order = chosen.choose(rank, 0) + Numbers(g, counted_list(rank));
    return Numbers(g, g.op("sort", {order.x()}, {{"axis", 0}})).at(counted_list(count));
}

Numbers counted_from_front(const Numbers& axes, std::int64_t rank) {
    OpWriter& g = axes.g();
    const Shape most{std::max<std::int64_t>(rank, 1)};
    const Numbers checked(g, g.op("checked_indices", {axes.x()}, {{"extents", most}}));
    return (checked < 0).choose(checked + rank, checked);
}

std::vector<std::int64_t> counted_list(std::int64_t count) {
    std::vector<std::int64_t> list(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
    std::iota(list.begin(), list.end(), 0);
    return list;
}

}  // namespace headrace::onnx
