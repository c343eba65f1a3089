#include <cmath>
#include <numbers>

#include "doors/onnx/ops/spectral.h"

/// Fourier transforms whose lengths, axes or frames are known only at run time, by matrices of waves.
namespace headrace::onnx {
namespace {

constexpr ElementType kExact = ElementType::f64;

/// e^(sign 2 pi i r c / length) for all rows and columns.
Complex waves(OpWriter& g, const Dim& rows, const Dim& columns, const Dim& length, int sign,
              ElementType type) {
    const Numbers turns = Numbers(g, g.positions(rows)).shaped({rows, 1}) * Numbers(g, g.positions(columns));
    const Operand rest = turns.rest(Numbers(g, Shape{length}).shaped({})).x();
    Operand angle = g.times(g.cast(rest, kExact), sign * 2 * std::numbers::pi);
    angle = g.op("div", {angle, g.at_run_time(length, kExact)});
    return {g.cast(g.op("cos", {angle}), type), g.cast(g.op("sin", {angle}), type)};
}

/// The real signal of the first half of a spectrum, whose other half has the conjugates in reverse.
Operand real_signal(OpWriter& g, const Complex& x, const Dim& length) {
    const ElementType type = x.re->type;
    const Dim half = g.shape(x.re).back();
    const Complex wave = waves(g, half, length, length, 1, type);
    const Numbers place(g, g.positions(half));
    const Numbers is_single =
        place.equals(0).either((place * 2).equals(Numbers(g, Shape{length}).shaped({})));
    const Operand weight = g.cast(is_single.choose(1, 2).x(), type);
    const Operand y = g.op("matmul", {g.op("mul", {x.re, weight}), wave.re});
    return x.im ? g.op("sub", {y, g.op("matmul", {g.op("mul", {x.im, weight}), wave.im})}) : y;
}

Dim told_length(OpWriter& g, const Node& node, const Dim& extent, bool is_half) {
    if (node.optional(1)) return extents_of(g, g.reshape(node.operand(1), {1})).at(0);
    return is_half ? largest({1, (extent - 1) * 2}) : extent;
}

Operand mel_of(OpWriter& g, const Operand& hertz) {
    return g.times(g.op("log", {g.plus(g.times(hertz, 1.0 / 700), 1.0)}), 2595 / std::numbers::ln10);
}

/// The places in the spectrum where the triangles begin and end.
Numbers mel_edges(OpWriter& g, const Node& node, const Dim& count, const Dim& length, const Dim& rate) {
    const auto edge = [&](std::size_t i) {
        return mel_of(g, g.reshape(g.cast(node.operand(i), kExact), {}));
    };
    const Operand low = edge(3);
    const Operand step = g.op("div", {g.op("sub", {edge(4), low}), g.at_run_time(count + 2, kExact)});
    const Operand edges = g.op("add", {g.op("mul", {g.cast(g.positions(count + 2), kExact), step}), low});
    const Operand power = g.op("exp", {g.times(edges, std::numbers::ln10 / 2595)});
    const Operand hertz = g.times(g.plus(power, -1.0), 700.0);
    const Operand scaled = g.op("mul", {hertz, g.at_run_time(length + 1, kExact)});
    const Operand bins = g.op("floor", {g.op("div", {scaled, g.at_run_time(rate, kExact)})});
    return {g, bins};
}

}  // namespace

Complex complex_product(OpWriter& g, std::string_view op, const Complex& x, const Operand& cos,
                        const Operand& sin) {
    const auto product = [&](const Operand& a, const Operand& b) { return g.op(op, {a, b}); };
    if (!x.im) return {product(x.re, cos), product(x.re, sin)};
    return {g.op("sub", {product(x.re, cos), product(x.im, sin)}),
            g.op("add", {product(x.re, sin), product(x.im, cos)})};
}

Complex transformed_by_waves(OpWriter& g, const Complex& x, const Dim& bins, const Dim& length, int sign) {
    const Complex wave = waves(g, g.shape(x.re).back(), bins, length, sign, x.re->type);
    return complex_product(g, "matmul", x, wave.re, wave.im);
}

ToldTransform dft_as_told(OpWriter& g, const Node& node, const Complex& parts, const Numbers& axis) {
    const bool inverse = node.flag("inverse", false), onesided = node.flag("onesided", false);
    const Shape sizes = g.shape(parts.re);
    const auto rank = static_cast<std::int64_t>(sizes.size());
    const Shape around_it = g.shape(around(g, parts.re, axis).first);
    const Dim before = around_it.at(0), extent = around_it.at(1), after = around_it.at(2);
    const Dim length = told_length(g, node, extent, onesided && inverse);
    const Dim half = divided_down(length, 2) + 1;
    const Dim bins = onesided && !inverse ? half : length;
    const Dim kept = smallest({extent, onesided && inverse ? half : length});
    const auto lines = [&](const Operand& v) {
        if (!v) return v;
        return g.cut(g.transpose(g.reshape(v, {before, extent, after}), {0, 2, 1}), 2, 0, kept);
    };
    const Complex x{lines(parts.re), lines(parts.im)};
    Complex y = onesided && inverse ? Complex{real_signal(g, x, length), nullptr}
                                    : transformed_by_waves(g, x, bins, length, inverse ? 1 : -1);
    const Numbers is_axis = axes_told(g, g.reshape(axis.x(), {1}), rank);
    const Shape shape = is_axis.choose(Numbers(g, Shape{bins}), Numbers(g, sizes)).extents();
    for (Operand* v : {&y.re, &y.im}) {
        if (!*v) continue;
        if (inverse) *v = g.op("div", {*v, g.at_run_time(length, (*v)->type)});
        *v = g.reshape(g.reshape(g.transpose(*v, {0, 2, 1}), {before * bins * after}), shape);
    }
    return {y, onesided && inverse};
}

Complex stft_as_told(OpWriter& g, const Node& node, const Complex& parts, const Dim& length,
                     const Dim& step) {
    const Dim extent = g.shape(parts.re).at(1), frames = divided_down(extent - length, step) + 1;
    const Numbers apart = Numbers(g, Shape{step}).shaped({});
    const Numbers begins = (Numbers(g, g.positions(frames)) * apart).shaped({frames, 1});
    const Numbers places = begins + Numbers(g, g.positions(length));
    const Operand window = node.optional(2);
    const auto framed = [&](const Operand& x) {
        if (!x) return x;
        const Operand y = g.op("gather", {x, places.x()}, {{"axis", 1}});
        return window ? g.op("mul", {y, g.reshape(g.cast(window, x->type), {1, 1, length})}) : y;
    };
    const Dim bins = node.flag("onesided", true) ? divided_down(length, 2) + 1 : length;
    return transformed_by_waves(g, {framed(parts.re), framed(parts.im)}, bins, length, -1);
}

Operand mel_as_told(OpWriter& g, const Node& node, ElementType type) {
    std::vector<Operand> counts;
    for (const std::size_t i : {0, 1, 2})
        counts.push_back(g.reshape(g.cast(node.operand(i), ElementType::i64), {1}));
    const Shape told = extents_of(g, g.concat(counts, 0));
    const Dim count = told.at(0), length = told.at(1), rows = divided_down(length, 2) + 1;
    const Numbers bins = mel_edges(g, node, count, length, told.at(2));
    const auto part = [&](std::int64_t start) { return Numbers(g, g.cut(bins.x(), 0, start, count)); };
    const Numbers lower = part(0), center = part(1), higher = part(2);
    const Numbers row = Numbers(g, g.positions(rows)).shaped({rows, 1});
    const auto share = [&](const Numbers& some, const Numbers& whole) {
        return g.op("div", {g.cast(some.x(), kExact), g.cast(whole.at_least(1).x(), kExact)});
    };
    const Numbers falls = (row >= center).both(higher > row), rises = (row >= lower).both(center >= row);
    const Operand rising =
        g.op("where", {(center > lower).x(), share(row - lower, center - lower), known(1, kExact)});
    const Operand risen = g.op("where", {rises.x(), rising, known(0, kExact)});
    return g.cast(g.op("where", {falls.x(), share(higher - row, higher - center), risen}), type);
}

}  // namespace headrace::onnx
