#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "doors/onnx/ops/spectral.h"

/// Windows of signals, and weights that sum up their spectra by the mel scale.
namespace headrace::onnx {
namespace {

// --- MelWeightMatrix

struct MelScale {
    std::int64_t count = 0, length = 0, rate = 0;
    double low = 0, high = 0;

    std::int64_t rows() const { return length / 2 + 1; }
};

MelScale mel_scale(const Node& node) {
    constexpr std::array kNames{"num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz",
                                "upper_edge_hertz"};
    const auto whole = [&](std::size_t i) { return node.integer_at(i, kNames.at(i)); };
    const auto real = [&](std::size_t i) { return number_as<double>(node.number(i, kNames.at(i))); };
    const MelScale mel{whole(0), whole(1), whole(2), real(3), real(4)};
    invalid_if(mel.count < 1 || mel.length < 1 || mel.rate < 1,
               "num_mel_bins is {}, dft_length {}, sample_rate {}", mel.count, mel.length, mel.rate);
    OpWriter::check_extent(mel.count);
    OpWriter::check_extent(mel.rows());
    OpWriter::check_extent(mel.rows() * mel.count);
    return mel;
}

/// Where in the spectrum triangles begin and end.
std::vector<std::int64_t> triangle_edges(const MelScale& mel) {
    const auto scaled = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
    const double low = scaled(mel.low), high = scaled(mel.high);
    std::vector<std::int64_t> edges;
    for (std::int64_t i = 0; i < mel.count + 2; ++i) {
        const double place =
            static_cast<double>(i) * ((high - low) / static_cast<double>(mel.count + 2)) + low;
        const double hertz = 700 * (std::pow(10, place / 2595) - 1);
        const double bin =
            std::floor(static_cast<double>(mel.length + 1) * hertz / static_cast<double>(mel.rate));
        const bool is_inside = bin >= 0 && bin <= static_cast<double>(mel.rows());  // false for NaN, too
        invalid_if(!is_inside, "the edges {} and {} lie outside the spectrum", mel.low, mel.high);
        edges.push_back(static_cast<std::int64_t>(bin));
    }
    return edges;
}

/// [bins of the spectrum, bins of the mel scale]: triangles that overlap.
Operand mel_weight_matrix(OpWriter& g, const Node& node) {
    const ElementType type = type_named(node.integer("output_datatype", 1), "output_datatype");
    if (!std::ranges::all_of(node.inputs, [](const Operand& x) { return is_known(x); }))
        return mel_as_told(g, node, type);
    const MelScale mel = mel_scale(node);
    const std::vector<std::int64_t> edges = triangle_edges(mel);
    const std::int64_t rows = mel.rows() + 1;  // an edge may lie right behind the spectrum
    std::vector<double> weights(static_cast<std::size_t>(rows * mel.count));
    const auto weight = [&](std::int64_t row, std::int64_t i) -> double& {
        return weights[static_cast<std::size_t>(row * mel.count + i)];
    };
    for (std::int64_t i = 0; i < mel.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int64_t lower = edges[at], center = edges[at + 1], higher = edges[at + 2];
        weight(center, i) = 1;
        for (std::int64_t row = lower; row < center; ++row)
            weight(row, i) = static_cast<double>(row - lower) / static_cast<double>(center - lower);
        for (std::int64_t row = center; row < higher; ++row)
            weight(row, i) = static_cast<double>(higher - row) / static_cast<double>(higher - center);
    }
    weights.resize(static_cast<std::size_t>(mel.rows() * mel.count));
    return g.reshape(known(weights, type), {mel.rows(), mel.count});
}

// --- windows

/// a0 - a1 cos(angle) + a2 cos(2 angle), as ONNX computes it: in single precision.
Operand cosine_window(OpWriter& g, const Node& node, const std::array<double, 3>& a) {
    constexpr ElementType kSingle = ElementType::f32;
    const ElementType type = type_named(node.integer("output_datatype", 1), "output_datatype");
    invalid_if(product_of(g.shape(node.x())) != Dim(1), "the size has the shape {}; it is one number",
               shortened_text(str(g.shape(node.x()))));
    const Dim size = extents_of(g, g.reshape(node.x(), {1})).at(0);
    invalid_if(!size.is_symbolic() && size.size() < 0, "the size is {}; at least 0 is right", size.size());
    const bool is_periodic = node.flag("periodic", true);
    const Operand steps = g.at_run_time(is_periodic ? size : size - 1, kSingle);
    const Operand step = g.op("div", {known(2 * std::numbers::pi, kSingle), steps});
    const Operand angle = g.op("mul", {g.cast(g.positions(size), kSingle), step});
    const auto wave = [&](const Operand& of, double factor) { return g.times(g.op("cos", {of}), factor); };
    Operand y = g.op("sub", {known(a[0], kSingle), wave(angle, a[1])});
    if (a[2] != 0) y = g.op("add", {y, wave(g.times(angle, 2.0), a[2])});
    return g.cast(y, type);
}

Operand hann_window(OpWriter& g, const Node& node) { return cosine_window(g, node, {0.5, 0.5, 0}); }
Operand hamming_window(OpWriter& g, const Node& node) {
    return cosine_window(g, node, {25.0 / 46, 21.0 / 46, 0});
}
Operand blackman_window(OpWriter& g, const Node& node) { return cosine_window(g, node, {0.42, 0.5, 0.08}); }

}  // namespace

std::span<const Operator> windows_operators() {
    static const Operator kOperators[] = {
        {"BlackmanWindow", 17, blackman_window, "1 -> 1, output_datatype int, periodic int"},
        {"HammingWindow", 17, hamming_window, "1 -> 1, output_datatype int, periodic int"},
        {"HannWindow", 17, hann_window, "1 -> 1, output_datatype int, periodic int"},
        {"MelWeightMatrix", 17, mel_weight_matrix, "5 -> 1, output_datatype int"},
    };
    return kOperators;
}

}  // namespace headrace::onnx
