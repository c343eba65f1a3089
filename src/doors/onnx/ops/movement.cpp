#include "doors/onnx/ops/movement.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "doors/onnx/reading/numbers.h"

/// Operators that only move elements.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kMostListed = 64;

/// Open extents are checked when they are known, as all that Reshape takes.
Dim left_over_quotient(const Dim& total, const Dim& others) {
    if (others.is(0)) return 0;
    if (!total.is_symbolic() && !others.is_symbolic())
        invalid_if(total.size() % others.size() != 0,
                   "{} elements do not divide by {}, the other extents' product", total.size(),
                   others.size());
    const auto exact = exact_quotient(total, others);
    return exact ? *exact : divided_down(total, others);
}

/// What the others leave of the elements; extents that both have cancel out.
Dim left_over(Shape left, const Shape& others) {
    Shape divisors;
    for (const Dim& d : others) {
        const auto same = std::ranges::find_if(left, [&](const Dim& own) { return is_same(d, own); });
        if (same == left.end() || is_same(d, 0))
            divisors.push_back(d);
        else
            left.erase(same);
    }
    return left_over_quotient(product_of(left), product_of(divisors));
}

std::vector<std::optional<Item>> elements_or_none(const Operand& x, std::int64_t count) {
    std::vector<std::optional<Item>> items(static_cast<std::size_t>(count));
    if (x->is_known())
        for (std::int64_t i = 0; i < count; ++i) items[static_cast<std::size_t>(i)] = x->item(i);
    return items;
}

/// To a shape that is known only at run time.
Operand reshaped_as_told(OpWriter& g, const Node& node) {
    Shape own = g.shape(node.x());
    const Dim elements = product_of(own);
    const Shape list = g.shape(node.operand(1));
    invalid_if(list.size() != 1, "the shape (input 1) has the shape {}; it is a list", str(list));
    const std::int64_t count = told_count(g, node.operand(1), "extents of the result");
    if (count == 0) return g.reshape(node.x(), {});
    Numbers wanted(g, node.operand(1));
    if (!node.is_one("allowzero", false)) {
        own.resize(static_cast<std::size_t>(count), 0);
        wanted = wanted.equals(0).choose(Numbers(g, own), wanted);
    }
    const Numbers is_left = wanted.equals(-1), others = is_left.choose(1, wanted).reduced("product");
    const Numbers whole = is_left.choose(Numbers(g, Shape{elements}).shaped({}).divided(others), wanted);
    auto sure = elements_or_none(node.operand(1), count);
    for (auto& item : sure) {
        const bool is_sure = item && !item->told && (item->above.is_symbolic() || item->above.size() > 0);
        if (!is_sure) item.reset();
    }
    return g.reshape(node.x(), extents_among(g, whole, sure));
}

/// 0 keeps an extent, -1 stands for what is left.
Operand reshape(OpWriter& g, const Node& node) {
    if (!is_known(node.operand(1))) return reshaped_as_told(g, node);
    const Shape own = g.shape(node.x());
    Shape wanted = node.dims(1, "the shape");
    const std::string given = shortened_text(str(wanted));
    if (!node.is_one("allowzero", false))
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            if (!wanted[i].is(0)) continue;
            invalid_if(i >= own.size(), "the shape (input 1) {} keeps extent {} of {}, which has none", given,
                       i, str(own));
            wanted[i] = own[i];
        }
    const auto is_left = [](const Dim& d) { return d.is(-1); };
    invalid_if(std::ranges::count_if(wanted, is_left) > 1, "the shape (input 1) {} has -1 more than once",
               given);
    invalid_if(std::ranges::any_of(wanted, [](const Dim& d) { return !d.is_symbolic() && d.size() < -1; }),
               "the shape (input 1) is {}; extents are at least -1", given);
    if (const auto at = std::ranges::find_if(wanted, is_left); at != wanted.end()) {
        Shape others = wanted;
        others.erase(others.begin() + (at - wanted.begin()));
        *at = left_over(own, others);
    }
    return g.reshape(node.x(), wanted);
}

Operand flatten(OpWriter& g, const Node& node) {
    const Shape sizes = g.shape(node.x());
    const auto rank = static_cast<std::int64_t>(sizes.size());
    std::int64_t axis = node.integer("axis", 1);
    invalid_if(axis < -rank || axis > rank, "axis {} is outside the dimensions of {}", axis, str(sizes));
    axis += axis < 0 ? rank : 0;
    const std::span<const Dim> all(sizes);
    const auto at = static_cast<std::size_t>(axis);
    return g.reshape(node.x(), {product_of(all.first(at)), product_of(all.subspan(at))});
}

std::int64_t count_of_axes(OpWriter& g, const Operand& axes) {
    const Shape sizes = g.shape(axes);
    invalid_if(sizes.size() > 1, "the axes have the shape {}; they are a list", str(sizes));
    return told_count(g, axes, "axes");
}

Operand squeezed_as_told(OpWriter& g, const Operand& x, const Operand& axes) {
    const Shape sizes = g.shape(x);
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const std::int64_t count = count_of_axes(g, axes), left = rank - count;
    if (count == 0) return g.op("identity", {x});
    invalid_if(left < 0, "{} axes of {} dimensions are to be dropped", count, rank);
    if (left == 0) return g.reshape(x, {});
    const Numbers kept = others(g, axes_told(g, axes, rank), rank, left);
    return g.reshape(x, Numbers(g, sizes).at(kept).extents());
}

Operand squeeze(OpWriter& g, const Node& node) {
    const Shape sizes = g.shape(node.x());
    const auto rank = static_cast<std::int64_t>(sizes.size());
    if (!is_known(node.optional(1))) return squeezed_as_told(g, node.x(), node.operand(1));
    std::vector<std::int64_t> axes;
    if (const auto given = node.list_at("axes", 1, "the axes")) {
        axes = *given;
    } else {
        for (std::int64_t i = 0; i < rank; ++i)
            if (is_same(sizes[static_cast<std::size_t>(i)], 1)) axes.push_back(i);
    }
    axes = axes_of(axes, rank);
    Shape left;
    for (std::int64_t i = 0; i < rank; ++i) {
        const Dim& d = sizes[static_cast<std::size_t>(i)];
        if (std::ranges::find(axes, i) == axes.end()) {
            left.push_back(d);
            continue;
        }
        // An open extent is left to the Reshape, which fails in a run where it is not 1.
        invalid_if(!d.is_symbolic() && !d.is(1), "extent {} of {} is to be dropped, and is not 1", i,
                   str(sizes));
    }
    return g.reshape(node.x(), left);
}

Operand unsqueezed_as_told(OpWriter& g, const Operand& x, const Operand& axes) {
    Shape sizes = g.shape(x);
    const auto rank = static_cast<std::int64_t>(sizes.size()) + count_of_axes(g, axes);
    const Numbers is_new = axes_told(g, axes, rank);
    // A dimension that is kept has as many kept ones before it as its place in the input says.
    const Operand kept = is_new.choose(0, 1).x();
    const Numbers before(g, g.op("cumulative_sum", {kept}, {{"axis", 0}, {"exclusive", true}}));
    sizes.emplace_back(1);
    return g.reshape(x, is_new.choose(1, Numbers(g, sizes).at(before)).extents());
}

Operand unsqueeze(OpWriter& g, const Node& node) {
    const Shape sizes = g.shape(node.x());
    if (!is_known(node.optional(1))) return unsqueezed_as_told(g, node.x(), node.operand(1));
    const auto given = node.list_at("axes", 1, "the axes");
    invalid_if(!given, "the axes are missing (attribute axes, or input 1 from operator set 13 on)");
    const auto rank = static_cast<std::int64_t>(sizes.size() + given->size());
    const std::vector<std::int64_t> axes = axes_of(*given, rank);
    Shape wanted;
    auto rest = sizes.begin();
    for (std::int64_t i = 0; i < rank; ++i)
        wanted.push_back(std::ranges::find(axes, i) != axes.end() ? Dim(1) : *rest++);
    return g.reshape(node.x(), wanted);
}

Operand transpose(OpWriter& g, const Node& node) {
    const std::int64_t rank = g.rank(node.x());
    std::vector<std::int64_t> order = node.integer_list("perm").value_or(std::vector<std::int64_t>());
    if (order.empty()) {
        order = counted_list(rank);
        std::ranges::reverse(order);
    }
    std::vector<std::int64_t> sorted = order;
    std::ranges::sort(sorted);
    invalid_if(sorted != counted_list(rank), "perm is [{}]; it has each of 0 to {} once",
               fmt::join(order, ", "), rank - 1);
    return g.transpose(node.x(), order);
}

/// A list of few integers of which some are known: the shapes that are made of them are known as far.
Operand listed(OpWriter& g, const std::vector<Operand>& parts) {
    const bool is_whole = parts[0]->type == ElementType::i32 || parts[0]->type == ElementType::i64;
    bool is_any_known = false;
    std::vector<Item> items;
    for (const Operand& x : parts) {
        const Shape sizes = g.shape(x);
        if (sizes.size() != 1 || sizes[0].is_symbolic() || sizes[0].size() > kMostListed) return nullptr;
        is_any_known |= !x->is_told();
    }
    if (!is_whole || !is_any_known) return nullptr;
    for (const Operand& x : parts) {
        const std::int64_t count = g.shape(x)[0].size();
        for (std::int64_t i = 0; i < count; ++i) {
            if (x->is_known())
                items.push_back(x->has_numbers() ? Item(x->integer(i)) : x->item(i));
            else
                items.push_back(Item::of_run(count == 1 ? x : g.cut(x, 0, i, 1)));
        }
    }
    const auto count = static_cast<std::int64_t>(items.size());
    return known(std::move(items), {count}, parts[0]->type);
}

Operand concat(OpWriter& g, const Node& node) {
    std::vector<Operand> parts;
    for (std::size_t i = 0; i < std::max<std::size_t>(node.inputs.size(), 1); ++i)
        parts.push_back(node.operand(i));
    const int axis = g.axis(parts[0], node.integer("axis", 0));
    for (const Operand& x : parts)
        invalid_if(g.rank(x) != g.rank(parts[0]) || g.rank(x) == 0,
                   "the inputs have {} and {} dimensions; they must have the same number, 1 or more",
                   g.rank(parts[0]), g.rank(x));
    if (Operand list = listed(g, parts)) return list;
    std::vector<Operand> filled;
    for (const Operand& x : parts)
        if (!is_same(g.shape(x)[static_cast<std::size_t>(axis)], 0)) filled.push_back(x);
    if (filled.empty()) filled.push_back(parts[0]);
    return g.concat(filled, axis);
}

/// Into parts of given sizes, or as many equal ones as there are outputs; the last may be smaller.
Results split(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const auto count = static_cast<std::int64_t>(node.outputs.size());
    const std::int64_t given = node.integer("num_outputs", count);
    invalid_if(given != count || count == 0, "num_outputs is {} and there are {} outputs", given, count);
    const int axis = g.axis(x, node.integer("axis", 0));
    const Dim extent = g.shape(x).at(static_cast<std::size_t>(axis));
    Shape sizes;
    if (const auto list = node.integer_list("split")) {
        sizes.assign(list->begin(), list->end());
    } else if (node.optional(1)) {
        sizes = dims_of(g, node, 1, "the parts' sizes", node.outputs.size());
    } else {
        const Dim each = divided_up(extent, count);
        sizes.assign(static_cast<std::size_t>(count - 1), each);
        sizes.push_back(extent - each * Dim(count - 1));
    }
    bool fits = static_cast<std::int64_t>(sizes.size()) == count;
    if (fits && !extent.is_symbolic() && !is_open(sizes)) {
        Dim total = 0;
        for (const Dim& d : sizes) {
            total = total + d;
            fits = fits && d.size() >= 0;
        }
        fits = fits && total == extent;
    }
    invalid_if(!fits, "parts of {} do not add up to {}, extent {} of the input", shortened_text(str(sizes)),
               extent.str(), axis);
    return g.ops("split", {x}, {{"splits", sizes}, {"axis", axis}});
}

/// What both broadcast to, where that is sure.
std::optional<Item> joint_item(const std::optional<Item>& wanted, const Dim& own) {
    if (is_same(own, 1)) return wanted;
    if (!wanted || wanted->told || wanted->above.is_symbolic()) return std::nullopt;
    return wanted->above.is(1) ? Item(own) : *wanted;
}

Operand expanded_as_told(OpWriter& g, const Operand& x, const Operand& shape) {
    const std::int64_t count = told_count(g, shape, "extents of the result");
    const std::int64_t rank = std::max<std::int64_t>(count, g.rank(x));
    if (rank == 0) return x;
    const auto missing = [&](std::int64_t own) { return static_cast<std::size_t>(rank - own); };
    Shape own = g.shape(x);
    own.insert(own.begin(), missing(static_cast<std::int64_t>(own.size())), 1);
    auto elements = elements_or_none(shape, count);
    elements.insert(elements.begin(), missing(count), Item(1));
    Operand list = g.reshape(g.cast(shape, ElementType::i64), {count});
    if (rank > count) list = g.concat({known(std::vector<std::int64_t>(missing(count), 1)), list}, 0);
    const Numbers wanted(g, list);
    const Numbers whole = wanted.equals(1).choose(Numbers(g, own), wanted);
    std::vector<std::optional<Item>> sure;
    for (std::size_t i = 0; i < own.size(); ++i) sure.push_back(joint_item(elements[i], own[i]));
    return g.expand(x, extents_among(g, whole, sure));
}

/// To the shape that both broadcast to.
Operand expand(OpWriter& g, const Node& node) {
    if (!is_known(node.operand(1))) return expanded_as_told(g, node.x(), node.operand(1));
    return g.expand(node.x(), broadcast(g, g.shape(node.x()), node.dims(1, "the shape")));
}

Operand tile(OpWriter& g, const Node& node) {
    const auto rank = static_cast<std::size_t>(g.rank(node.x()));
    return g.op("tile", {node.x()}, {{"repetitions", dims_of(g, node, 1, "the repetitions", rank)}});
}

std::string block_mode(const Node& node) {
    const std::string mode = node.text("mode", "DCR");
    invalid_if(mode != "DCR" && mode != "CRD", "mode is '{}'; it must be DCR or CRD", mode);
    return mode;
}

/// [n, c b b, h, w] as [n, c, h b, w b]; the blocks are before the channels, or after them in mode CRD.
Operand depth_to_space(OpWriter& g, const Node& node) {
    const std::int64_t b = node.integer("blocksize");
    const std::string mode = block_mode(node);
    const Shape sizes = g.shape(node.x());
    invalid_if(sizes.size() != 4, "the input has {} dimensions, not 4", sizes.size());
    const Dim n = sizes[0], c = sizes[1], h = sizes[2], w = sizes[3];
    invalid_if(b < 1 || b > kLargestExtent || (!c.is_symbolic() && c.size() % (b * b) != 0),
               "blocksize is {}, and {} channels do not divide into blocks of {} x {}", b, c.str(), b, b);
    const Dim inner = divided_down(c, b * b);
    const Operand x = mode == "DCR"
                          ? g.transpose(g.reshape(node.x(), {n, b, b, inner, h, w}), {0, 3, 4, 1, 5, 2})
                          : g.transpose(g.reshape(node.x(), {n, inner, b, b, h, w}), {0, 1, 4, 2, 5, 3});
    return g.reshape(x, {n, inner, h * b, w * b});
}

/// The inverse of DepthToSpace in the same mode.
Operand space_to_depth(OpWriter& g, const Node& node) {
    const std::int64_t b = node.integer("blocksize");
    const std::string mode = block_mode(node);
    const Shape sizes = g.shape(node.x());
    invalid_if(sizes.size() != 4, "the input has {} dimensions, not 4", sizes.size());
    const Dim n = sizes[0], c = sizes[1], h = sizes[2], w = sizes[3];
    const bool is_image_open = h.is_symbolic() || w.is_symbolic();  // then Reshape says what does not divide
    invalid_if(b < 1 || b > kLargestExtent || (!is_image_open && (h.size() % b != 0 || w.size() % b != 0)),
               "blocksize is {}, and the image of {} x {} does not divide into blocks of {} x {}", b, h.str(),
               w.str(), b, b);
    const Dim rows = divided_down(h, b), columns = divided_down(w, b);
    const std::vector<std::int64_t> order = mode == "DCR" ? std::vector<std::int64_t>{0, 3, 5, 1, 2, 4}
                                                          : std::vector<std::int64_t>{0, 1, 3, 5, 2, 4};
    const Operand x = g.transpose(g.reshape(node.x(), {n, c, rows, b, columns, b}), order);
    return g.reshape(x, {n, c * Dim(b * b), rows, columns});
}

Operand trilu(OpWriter& g, const Node& node) {
    const Operand x = node.x(), diagonal = node.optional(1);
    const bool upper = node.flag("upper", true);
    if (!diagonal || (is_known(diagonal) && diagonal->has_numbers())) {
        const std::int64_t number = diagonal ? node.integer_at(1, "the diagonal") : 0;
        return g.op("triangular", {x},
                    {{"upper", upper}, {"diagonal", std::clamp<std::int64_t>(number, INT32_MIN, INT32_MAX)}});
    }
    invalid_if(g.rank(x) < 2, "the input has {} dimensions; 2 are the least", g.rank(x));
    const Shape sizes = g.shape(x);
    const Dim rows = sizes[sizes.size() - 2], columns = sizes.back();
    const Numbers row = Numbers(g, g.positions(rows)).shaped({rows, 1}) + Numbers(g, g.reshape(diagonal, {}));
    const Numbers column = Numbers(g, g.positions(columns)).shaped({1, columns});
    return g.op("where", {(upper ? column >= row : row >= column).x(), x, known(0, x->type)});
}

}  // namespace

Shape broadcast(OpWriter& g, const Shape& a, const Shape& b) {
    const std::size_t rank = std::max(a.size(), b.size());
    const auto at = [&](const Shape& shape, std::size_t i) {
        return i < rank - shape.size() ? Dim(1) : shape[i - (rank - shape.size())];
    };
    Shape joint;
    for (std::size_t i = 0; i < rank; ++i) {
        const Dim one = at(a, i), other = at(b, i);
        if (is_same(one, 1) || is_same(one, other))
            joint.push_back(other);
        else if (is_same(other, 1))
            joint.push_back(one);
        else if (!g.is_short({one, other}) || one.is_symbolic() != other.is_symbolic())
            joint.push_back(one.is_symbolic() ? other : one);
        else if (one.is_symbolic())
            joint.push_back(largest({one, other}) * smallest({one, other, 1}));
        else
            throw Invalid(fmt::format("the shapes {} and {} do not broadcast", str(a), str(b)));
    }
    return joint;
}

std::span<const Operator> movement_operators() {
    static const Operator kOperators[] = {
        {"Concat", 1, concat, "1.. -> 1, axis int"},
        {"DepthToSpace", 1, depth_to_space, "1 -> 1, blocksize int; 11: 1 -> 1, blocksize int, mode string"},
        {"Expand", 8, expand, "2 -> 1"},
        {"Flatten", 1, flatten, "1 -> 1, axis int"},
        {"Reshape", 1, reshape,
         "1 -> 1, consumed_inputs ints, shape ints; 5: 2 -> 1; 14: 2 -> 1, allowzero int"},
        {"SpaceToDepth", 1, space_to_depth, "1 -> 1, blocksize int; 28: 1 -> 1, blocksize int, mode string"},
        {"Split", 1, split,
         "1..2 -> 1.., axis int, split ints; 2: 1 -> 1.., axis int, split ints; 13: 1..2 -> 1.., axis int; "
         "18: 1..2 -> 1.., axis int, num_outputs int"},
        {"Squeeze", 1, squeeze, "1 -> 1, axes ints; 13: 1..2 -> 1"},
        {"Tile", 1, tile, "3 -> 1; 6: 2 -> 1"},
        {"Transpose", 1, transpose, "1 -> 1, perm ints"},
        {"Trilu", 14, trilu, "1..2 -> 1, upper int"},
        {"Unsqueeze", 1, unsqueeze, "1 -> 1, axes ints; 13: 2 -> 1"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
