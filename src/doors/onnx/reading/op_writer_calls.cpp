#include <algorithm>
#include <numeric>

#include "doors/onnx/reading/carried.h"
#include "doors/onnx/reading/op_writer.h"

/// OpWriter's calls of single ops, which do nothing where there is nothing to do.
namespace headrace::onnx {
namespace {

bool is_number(const Item& item, std::int64_t number) {
    return item.is_number() && item.is_whole() && item.above.is(number);
}

}  // namespace

Operand OpWriter::cast(const Operand& x, ElementType type) {
    if (x->type == type) return x;
    if (is_carried(x->type)) return cast(carried(*this, x), type);
    if (is_carried(type)) return narrowed(*this, x, type);
    if (type == ElementType::boolean) {
        const bool is_nibble = x->type == ElementType::i4 || x->type == ElementType::u4;
        const Operand whole = is_nibble ? cast(x, ElementType::i8) : x;
        return op("not_equal", {whole, known(0, whole->type)});
    }
    const Operand from = x->type == ElementType::boolean ? retyped(x, ElementType::u8) : x;
    return from->type == type ? from : op("cast", {from}, {{"data_type", stored_as(type)}});
}

Operand OpWriter::reshape(const Operand& x, const Shape& wanted) {
    if (has_shape(x, wanted)) return x;
    if (x->known && !onnx::is_open(wanted) && product_of(wanted).is(x->known->count())) {
        Elements same = *x->known;
        same.shape = numbers_of(wanted);
        return known(std::move(same), x->type);
    }
    return op("reshape", {x}, {{"new_shape", wanted}});
}

Operand OpWriter::transpose(const Operand& x, const std::vector<std::int64_t>& permutation) {
    if (std::ranges::is_sorted(permutation)) return x;
    return op("transpose", {x}, {{"permutation", permutation}});
}

std::pair<Operand, std::vector<std::int64_t>> OpWriter::swap_to_last(const Operand& x, int axis) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(rank(x)));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order.at(static_cast<std::size_t>(axis)), order.back());
    return {transpose(x, order), order};
}

Operand OpWriter::expand(const Operand& x, const Shape& wanted) {
    return has_shape(x, wanted) ? x : op("expand", {x}, {{"new_shape", wanted}});
}

Operand OpWriter::concat(const std::vector<Operand>& parts, int axis) {
    return parts.size() == 1 ? parts[0] : op("concat", parts, {{"axis", axis}});
}

Operand OpWriter::cut(const Operand& x, int axis, const Dim& start, const Dim& size, std::int64_t step) {
    const auto at = static_cast<std::size_t>(axis);
    Shape sizes = shape(x);
    invalid_if(at >= sizes.size(), "axis {} is outside the {} dimensions of the input", axis, sizes.size());
    if (start.is(0) && step == 1 && is_same(size, sizes[at])) return x;
    Shape starts(sizes.size(), 0);
    starts[at] = start;
    sizes[at] = size;
    NamedAttrs options{{"starts", starts}, {"sizes", sizes}};
    if (step != 1) {
        std::vector<std::int64_t> steps(sizes.size(), 1);
        steps[at] = step;
        options.emplace_back("strides", steps);
    }
    return op("slice", {x}, options);
}

Operand OpWriter::times(const Operand& x, double factor) {
    return factor == 1 ? x : op("mul", {x, known(factor, x->type)});
}
Operand OpWriter::times(const Operand& x, const Item& factor) {
    return is_number(factor, 1) ? x : op("mul", {x, at_run_time(factor, x->type)});
}
Operand OpWriter::plus(const Operand& x, double number) {
    return number == 0 ? x : op("add", {x, known(number, x->type)});
}
Operand OpWriter::plus(const Operand& x, const Item& number) {
    return is_number(number, 0) ? x : op("add", {x, at_run_time(number, x->type)});
}

Operand OpWriter::within(const Operand& x, const Item& low, const Item& high) {
    if (low.is_number() && high.is_number() && low.is_whole() && high.is_whole())
        return op("clamp", {x}, {{"min_value", low.above.size()}, {"max_value", high.above.size()}});
    return op("min", {op("max", {x, at_run_time(low, x->type)}), at_run_time(high, x->type)});
}

Operand OpWriter::add_axes(const Operand& x, std::int64_t after) {
    if (after == 0) return x;
    Shape wanted = shape(x);
    wanted.insert(wanted.end(), static_cast<std::size_t>(after), 1);
    return reshape(x, wanted);
}

// --- extents as numbers at run time

Operand OpWriter::at_run_time(const Item& item, ElementType type) {
    if (item.told) return cast(reshape(item.told, {}), type);
    if (!item.below.is(1)) return op("div", {at_run_time(item.above, type), at_run_time(item.below, type)});
    if (!item.above.is_symbolic()) return known(item.above.size(), type);
    const std::string& text = item.above.text();
    if (!as_numbers_.contains(text)) {
        Operand total;
        for (const auto& [factor, parts] : item.above.expression().terms()) {
            Operand part = product_at_run_time(parts);
            if (factor != 1) part = op("mul", {part, known(factor, ElementType::i64)});
            total = total ? op("add", {total, part}) : part;
        }
        as_numbers_[text] = total;
    }
    return cast(as_numbers_.at(text), type);
}

Operand OpWriter::product_at_run_time(const std::vector<Expression>& parts) {
    Operand whole = known(1, ElementType::i64);
    std::string key;
    for (const Expression& part : parts) {
        key += (key.empty() ? "*" : " * ") + part.str();
        const auto [at, is_new] = as_numbers_.try_emplace(key);
        if (is_new) {
            const Dim extent = Dim::of(part, Range{});
            Operand number = count_of(extent);
            if (extent.min_size() < 0) number = op("sub", {number, count_of(Dim(0) - extent)});
            at->second = key.find(" * ") == std::string::npos ? number : op("mul", {whole, number});
        }
        whole = as_numbers_.at(key);
    }
    return whole;
}

Operand OpWriter::count_of(const Dim& d) {
    const Dim count = largest({d, 0});
    if (!count.is_symbolic()) return known(count.size(), ElementType::i64);
    const Operand ones = expand(known(1, ElementType::i64), {count});
    return op("reduce_sum", {ones}, {{"axes", std::vector<std::int64_t>{0}}});
}

Operand OpWriter::filled(double number, ElementType type, const Shape& wanted) {
    return expand(known(number, type), wanted);
}

Operand OpWriter::positions(const Dim& count, ElementType type) {
    if (!count.is_symbolic()) {
        invalid_if(count.size() < 0, "the number of places is {}; at least 0 is right", count.size());
        check_extent(count.size());
        std::vector<std::int64_t> places(static_cast<std::size_t>(count.size()));
        std::iota(places.begin(), places.end(), 0);
        return known(places, type);
    }
    return op("cumulative_sum", {filled(1, type, {count})}, {{"axis", 0}, {"exclusive", true}});
}

}  // namespace headrace::onnx
