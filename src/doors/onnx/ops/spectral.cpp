#include "doors/onnx/ops/spectral.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "doors/onnx/ops/branches.h"

/// Discrete Fourier transforms, of whole signals and of windows that move over them.
namespace headrace::onnx {
namespace {

constexpr std::int64_t kDirect =
    256;  // longer transforms are composed of shorter ones where their length divides
constexpr std::int64_t kLongest = 4096;  // of a transform by one matrix

/// e^(sign 2 pi i r c / length) for all rows and columns.
Complex angles(std::int64_t rows, std::int64_t columns, std::int64_t length, int sign, const Shape& shape,
               ElementType type, OpWriter& g) {
    std::vector<double> cos, sin;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
            const double angle = sign * 2 * std::numbers::pi * static_cast<double>(r * c % length) /
                                 static_cast<double>(length);
            cos.push_back(std::cos(angle));
            sin.push_back(std::sin(angle));
        }
    return {g.reshape(known(cos, type), shape), g.reshape(known(sin, type), shape)};
}

/// The largest divisor up to the root; 1 for primes.
std::int64_t middle_divisor(std::int64_t length) {
    auto n = static_cast<std::int64_t>(std::sqrt(static_cast<double>(length)));
    while (n > 1 && length % n != 0) --n;
    return std::max<std::int64_t>(n, 1);
}

Complex transformed(OpWriter& g, const Complex& x, std::int64_t length, int sign);

/// By Cooley and Tukey: `b` transforms of length a, factors, and `a` transforms of length b.
Complex composed(OpWriter& g, const Complex& x, std::int64_t a, std::int64_t b, int sign) {
    Shape lead = g.shape(x.re);
    lead.pop_back();
    std::vector<std::int64_t> turn = counted_list(static_cast<std::int64_t>(lead.size()) + 2);
    std::swap(turn.back(), turn[turn.size() - 2]);
    const auto behind_lead = [&](std::initializer_list<std::int64_t> extents) {
        Shape shape = lead;
        shape.insert(shape.end(), extents.begin(), extents.end());
        return shape;
    };
    const auto turned = [&](const Operand& v) {
        return v ? g.transpose(g.reshape(v, behind_lead({a, b})), turn) : v;
    };
    const Complex inner = transformed(g, {turned(x.re), turned(x.im)}, a, sign);  // [..., b, a]
    const Complex factors = angles(b, a, a * b, sign, {b, a}, x.re->type, g);
    const Complex product = complex_product(g, "mul", inner, factors.re, factors.im);
    const Complex outer = transformed(g, {g.transpose(product.re, turn), g.transpose(product.im, turn)}, b,
                                      sign);  // [..., a, b]
    const auto whole = [&](const Operand& v) {
        return g.reshape(g.transpose(v, turn), behind_lead({a * b}));
    };
    return {whole(outer.re), whole(outer.im)};
}

/// Along the last axis, whose extent is `length`.
Complex transformed(OpWriter& g, const Complex& x, std::int64_t length, int sign) {
    const std::int64_t factor = middle_divisor(length);
    if (length > kDirect && factor != 1) return composed(g, x, factor, length / factor, sign);
    if (length > kLongest)
        throw Refused(
            fmt::format("the transform has the length {}, which does not divide; {} is the longest such",
                        length, kLongest),
            "Pad the signal to a power of two");
    const Complex matrix = angles(length, length, length, sign, {length, length}, x.re->type, g);
    return complex_product(g, "matmul", x, matrix.re, matrix.im);
}

/// The same. A complex signal's sums are twice as long as a real one's: it is split once at least where the
/// length divides, as what rounds less.
Complex split_transform(OpWriter& g, const Complex& x, std::int64_t length, int sign) {
    const std::int64_t factor = middle_divisor(length);
    return !x.im || factor == 1 ? transformed(g, x, length, sign)
                                : composed(g, x, factor, length / factor, sign);
}

/// Real and imaginary parts of a tensor [..., 1] or [..., 2].
Complex parts_of(OpWriter& g, const Operand& x) {
    Shape sizes = g.shape(x);
    invalid_if(sizes.size() < 2, "the signal has {} dimensions; 2 are the least", sizes.size());
    const Dim last = sizes.back();
    invalid_if(!last.is(1) && !last.is(2),
               "the last extent is {}; 1 is for real numbers and 2 for complex ones", last.str());
    sizes.pop_back();
    const auto part = [&](std::int64_t i) {
        return g.reshape(g.cut(x, static_cast<int>(sizes.size()), i, 1), sizes);
    };
    return {part(0), last.is(2) ? part(1) : nullptr};
}

Operand joined_parts(OpWriter& g, const Complex& parts) {
    return g.concat({g.add_axes(parts.re, 1), g.add_axes(parts.im, 1)}, g.rank(parts.re));
}

/// Cut, or with zeros behind, along the last axis.
Operand to_length(OpWriter& g, const Operand& x, std::int64_t length) {
    if (!x) return x;
    const int last = g.rank(x) - 1;
    const std::int64_t own = g.fixed(g.shape(x).back(), "the length of the signal");
    if (own >= length) return g.cut(x, last, 0, length);
    Shape nothing(static_cast<std::size_t>(last) + 1, 0), end = nothing;
    end.back() = length - own;
    return g.op(
        "pad", {x},
        {{"mode", "constant"}, {"value", 0.0}, {"beginning_padding", nothing}, {"ending_padding", end}});
}

/// A spectrum of which half is given: the other half has the conjugates in reverse.
Complex mirrored(OpWriter& g, const Complex& x, std::int64_t length) {
    const std::int64_t half = length / 2 + 1, rest = length - half;
    const Operand re = to_length(g, x.re, half);
    const Operand im = x.im ? to_length(g, x.im, half) : g.filled(0, re->type, g.shape(re));
    if (rest == 0) return {re, im};
    const std::int64_t last = g.rank(re) - 1;
    const auto tail = [&](const Operand& v) {
        return g.op("reverse", {g.cut(v, static_cast<int>(last), 1, rest)}, {{"axes", std::vector{last}}});
    };
    return {g.concat({re, tail(re)}, static_cast<int>(last)),
            g.concat({im, g.op("neg", {tail(im)})}, static_cast<int>(last))};
}

ElementType spectral_type(const Operand& x) {
    return x->type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
}

Operand dft_of_open(OpWriter& g, const Node& node, const Complex& parts, const Numbers& axis) {
    const ToldTransform found = dft_as_told(g, node, parts, axis);
    return g.cast(found.is_real ? g.add_axes(found.y.re, 1) : joined_parts(g, found.y), node.x()->type);
}

std::int64_t dft_length(const Node& node, std::int64_t extent, bool is_half) {
    const std::int64_t otherwise = is_half ? 2 * (extent - 1) : extent;
    const std::int64_t length = node.optional(1) ? node.integer_at(1, "the length") : otherwise;
    invalid_if(length < 1, "the length is {}; at least 1", length);
    OpWriter::check_extent(length);
    return length;
}

Operand dft_along(OpWriter& g, const Node& node, Complex x, int axis) {
    const bool inverse = node.flag("inverse", false), onesided = node.flag("onesided", false);
    const bool is_back = onesided && inverse;
    const int last = g.rank(x.re) - 1;
    std::vector<std::int64_t> order = counted_list(last + 1);
    std::swap(order[static_cast<std::size_t>(axis)], order.back());
    const auto each = [](const Complex& of, const auto& change) {
        return Complex{change(of.re), of.im ? change(of.im) : nullptr};
    };
    const auto turn = [&](const Operand& v) { return g.transpose(v, order); };
    x = each(x, turn);
    const std::int64_t extent = g.fixed(g.shape(x.re).back(), "the length of the signal");
    const std::int64_t length = dft_length(node, extent, is_back);
    if (is_back) x = mirrored(g, x, length);
    x = each(x, [&](const Operand& v) { return to_length(g, v, length); });
    Complex y = split_transform(g, x, length, inverse ? 1 : -1);
    if (inverse) y = each(y, [&](const Operand& v) { return g.times(v, 1 / static_cast<double>(length)); });
    if (onesided && !inverse)
        y = each(y, [&](const Operand& v) { return g.cut(v, last, 0, length / 2 + 1); });
    y = each(y, turn);
    return g.cast(is_back ? g.add_axes(y.re, 1) : joined_parts(g, y), node.x()->type);
}

/// Whether a transform along any of the axes is one by matrices that are made while the model is read.
bool are_short(const Shape& sizes) {
    return std::ranges::all_of(sizes, [](const Dim& d) { return !d.is_symbolic() && d.size() <= kDirect; });
}

/// Along an axis that a run tells, of a signal whose extents are known: a branch for each axis from `first`
/// on.
Operand dft_in_branches(OpWriter& g, const Node& node, const Complex& parts, const Operand& axis, int first) {
    if (first + 1 == g.rank(parts.re)) return dft_along(g, node, parts, first);
    const Operand is_first = g.op("equal", {axis, known(first, ElementType::i64)});
    return one_of(
               g, is_first, [&](Body& body) { return Results{dft_along(body, node, parts, first)}; },
               [&](Body& body) { return Results{dft_in_branches(body, node, parts, axis, first + 1)}; })
        .at(0);
}

/// Along an axis, which is an attribute before operator set 20.
Operand dft(OpWriter& g, const Node& node) {
    const Operand x = node.x();
    const Complex parts = parts_of(g, g.cast(x, spectral_type(x)));
    const std::int64_t rank = g.rank(x);
    std::int64_t given = node.opset < 20 ? node.integer("axis", 1) : -2;
    if (node.opset >= 20 && node.optional(2)) {
        if (!is_known(node.operand(2))) {
            const Numbers told = Numbers(g, node.operand(2)).shaped({});
            // The last dimension counts, which the parts do not have.
            const Numbers axis = (told < 0).choose(told + rank, told);
            const bool is_back = node.flag("inverse", false) && node.flag("onesided", false);
            if (is_back || !are_short(g.shape(parts.re)) || !is_known(node.optional(1)))
                return dft_of_open(g, node, parts, axis);
            return dft_in_branches(g, node, parts, counted_from_front(axis, rank - 1).x(), 0);
        }
        given = node.integer_at(2, "the axis");
    }
    const int axis = g.axis(x, given);
    invalid_if(axis == rank - 1, "the axis is the last one, which has the real and imaginary parts");
    const bool is_open = g.shape(parts.re)[static_cast<std::size_t>(axis)].is_symbolic();
    if (is_open || !is_known(node.optional(1)))
        return dft_of_open(g, node, parts, Numbers(g, static_cast<std::int64_t>(axis)));
    return dft_along(g, node, parts, axis);
}

/// [batch, frames, bins] of [batch, signal] by a bank of filters.
Operand framed(OpWriter& g, const Operand& x, const Operand& bank, std::int64_t step) {
    const Shape s = g.shape(x);
    const Operand y = g.op("conv2d", {g.reshape(x, {s.at(0), 1, 1, s.at(1)}), bank},
                           {{"strides", std::vector<std::int64_t>{1, step}}});
    const Shape made = g.shape(y);
    return g.transpose(g.reshape(y, {made.at(0), made.at(1), made.at(3)}), {0, 2, 1});
}

/// The transform's rows in the window.
Complex filter_bank(OpWriter& g, const Node& node, std::int64_t length, ElementType type) {
    OpWriter::check_extent(length);
    const std::int64_t bins = node.flag("onesided", true) ? length / 2 + 1 : length;
    OpWriter::check_extent(2 * bins * length);
    const Complex rows = angles(bins, length, length, -1, {bins, 1, 1, length}, type, g);
    if (!node.optional(2)) return rows;
    const Operand window = g.reshape(g.cast(node.operand(2), type), {1, 1, 1, length});
    return {g.op("mul", {rows.re, window}), g.op("mul", {rows.im, window})};
}

std::int64_t frame_length(OpWriter& g, const Node& node) {
    if (node.optional(3)) return node.integer_at(3, "frame_length");
    const Operand window = node.optional(2);
    invalid_if(!window, "there is neither a window nor a frame_length");
    invalid_if(g.rank(window) != 1, "the window (input 2) has {} dimensions, not 1", g.rank(window));
    return g.fixed(g.shape(window)[0], "the length of the window");
}

/// [batch, frames, bins, 2]: a convolution whose filters are the transform's rows in the window.
Operand stft(OpWriter& g, const Node& node) {
    const Operand signal = node.x(), window = node.optional(2);
    const Complex parts =
        parts_of(g, g.cast(g.rank(signal) == 3 ? signal : g.add_axes(signal, 1), spectral_type(signal)));
    invalid_if(g.rank(parts.re) != 2, "the signal has the shape {}; it is [batch, length, 1 or 2]",
               shortened_text(str(g.shape(signal))));
    if (!is_known(node.operand(1)) || !is_known(node.optional(3))) {
        invalid_if(!window && !node.optional(3), "there is neither a window nor a frame_length");
        const auto one = [&](std::size_t i, std::string_view what) {
            const Operand told = g.reshape(g.cast(node.operand(i), ElementType::i64), {1});
            return extents_of(g, is_known(told) ? told : checked_numbers(g, told, what, 1)).at(0);
        };
        const Dim step = one(1, "the frame_step"),
                  length = node.optional(3) ? one(3, "the frame_length") : g.size(window);
        return g.cast(joined_parts(g, stft_as_told(g, node, parts, length, step)), signal->type);
    }
    const std::int64_t step = node.integer_at(1, "frame_step"), length = frame_length(g, node);
    invalid_if(step < 1 || length < 1, "frame_step is {} and frame_length {}; both are at least 1", step,
               length);
    const Complex bank = filter_bank(g, node, length, parts.re->type);
    Complex y{framed(g, parts.re, bank.re, step), framed(g, parts.re, bank.im, step)};
    if (parts.im) {
        y.re = g.op("sub", {y.re, framed(g, parts.im, bank.im, step)});
        y.im = g.op("add", {y.im, framed(g, parts.im, bank.re, step)});
    }
    return g.cast(joined_parts(g, y), signal->type);
}

}  // namespace

std::span<const Operator> spectral_operators() {
    static const Operator kOperators[] = {
        {"DFT", 17, dft,
         "1..2 -> 1, axis int, inverse int, onesided int; 20: 1..3 -> 1, inverse int, onesided int"},
        {"STFT", 17, stft, "2..4 -> 1, onesided int"}};
    return kOperators;
}

}  // namespace headrace::onnx
