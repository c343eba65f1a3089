#include "doors/onnx/ops/closed_resampling.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "doors/onnx/ops/open_resampling.h"
#include "doors/onnx/reading/numbers.h"

namespace headrace::onnx {
namespace {

constexpr std::int64_t kMostTaps = 1 << 12;  // elements of the input that one of the output is a sum of

/// Places and weights for each element of the result.
struct WeightedPlaces {
    std::vector<std::int64_t> places;
    std::vector<double> weights;
};

/// A ResizedAxis of numbers only.
struct ClosedAxis {
    explicit ClosedAxis(const ResizedAxis& axis)
        : size(axis.size.size()),
          out(axis.out.size()),
          scale(std::get<double>(axis.scale)),
          start(std::get<double>(axis.start)),
          end(std::get<double>(axis.end)) {}

    std::int64_t size, out;
    double scale, start, end;
};

/// Where an output element lies in the input, in single precision as runtimes compute it.
using PointOf = float (*)(const ClosedAxis& axis, float x);

float half_pixel(const ClosedAxis& axis, float x) {
    return (x + 0.5F) / static_cast<float>(axis.scale) - 0.5F;
}

float half_pixel_symmetric(const ClosedAxis& axis, float x) {
    const auto scale = static_cast<float>(axis.scale), size = static_cast<float>(axis.size);
    const float offset = size / 2 * (1 - static_cast<float>(axis.out) / (scale * size));
    // ONNX Runtime rounds here.
    return static_cast<float>(offset + (static_cast<double>(x) + 0.5) / static_cast<double>(scale) - 0.5);
}

float crop_and_resize(const ClosedAxis& axis, float x) {
    const auto start = static_cast<float>(axis.start), end = static_cast<float>(axis.end);
    const auto last = static_cast<float>(axis.size) - 1;
    if (axis.out == 1) return 0.5F * (start + end) * last;
    return start * last + x * (end - start) * last / (static_cast<float>(axis.out) - 1);
}

/// Names are compared once, not for each of what may be millions of elements.
PointOf point_function(std::string_view transformation) {
    if (transformation == "asymmetric")
        return [](const ClosedAxis& axis, float x) { return x / static_cast<float>(axis.scale); };
    if (transformation == "align_corners")
        return [](const ClosedAxis& axis, float x) {
            const auto last = static_cast<float>(axis.size) - 1, out = static_cast<float>(axis.out);
            return axis.out > 1 ? x * last / (out - 1) : 0.0F;
        };
    if (transformation == "pytorch_half_pixel")
        return [](const ClosedAxis& axis, float x) { return axis.out > 1 ? half_pixel(axis, x) : 0.0F; };
    if (transformation == "tf_half_pixel_for_nn")
        return [](const ClosedAxis& axis, float x) { return (x + 0.5F) / static_cast<float>(axis.scale); };
    if (transformation == "half_pixel_symmetric") return half_pixel_symmetric;
    if (transformation == "tf_crop_and_resize") return crop_and_resize;
    return half_pixel;
}

std::vector<float> points_along(const ClosedAxis& axis, std::string_view transformation) {
    const PointOf point_of = point_function(transformation);
    std::vector<float> points(static_cast<std::size_t>(axis.out));
    for (std::size_t i = 0; i < points.size(); ++i) points[i] = point_of(axis, static_cast<float>(i));
    return points;
}

/// The element at a whole coordinate, or the next one that is inside; NaN is the first.
std::int64_t place_inside(double coordinate, std::int64_t size) {
    if (!(coordinate > 0)) return 0;
    return coordinate >= static_cast<double>(size - 1) ? size - 1 : static_cast<std::int64_t>(coordinate);
}

using CoordinateOf = double (*)(double x);

CoordinateOf nearest_function(std::string_view mode) {
    if (mode == "floor") return [](double x) { return std::floor(x); };
    if (mode == "ceil") return [](double x) { return std::ceil(x); };
    if (mode == "round_prefer_ceil") return [](double x) { return std::floor(x + 0.5 + kTie); };
    return [](double x) { return std::ceil(x - 0.5 - kTie); };
}

/// Keys' kernel (doi:10.1109/TASSP.1981.1163711), of distances up to 2.
double keys_weight(double distance, double a) {
    const double d = std::abs(distance);
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// The weights' sum over each element of the result becomes 1.
void normalize(std::vector<WeightedPlaces>& taps) {
    if (taps.empty()) return;
    std::vector<double> total(taps.front().weights.size(), 0);
    for (const WeightedPlaces& tap : taps)
        for (std::size_t i = 0; i < total.size(); ++i) total[i] += tap.weights[i];
    for (WeightedPlaces& tap : taps)
        for (std::size_t i = 0; i < total.size(); ++i) tap.weights[i] /= total[i] == 0 ? 1 : total[i];
}

/// Linear and cubic interpolation of a node; antialiasing widens the kernel where the image shrinks.
class InterpolationKernel {
public:
    InterpolationKernel(const ClosedAxis& axis, const Node& node)
        : axis_(axis),
          mode_(node.text("mode", "linear")),
          a_(node.real("cubic_coeff_a", -0.75)),
          antialias_(node.flag("antialias", false)),
          is_inside_(node.flag("exclude_outside", false)),
          widened_(antialias_ ? std::max(1 / axis.scale, 1.0) : 1.0),
          radius_((is_cubic() ? 2 : 1) * widened_) {
        check();
    }

    std::vector<WeightedPlaces> taps(const std::vector<float>& points) const {
        std::vector<double> at;
        for (const float point : points) at.push_back(within_reach(point));
        std::vector<WeightedPlaces> taps;
        const auto count = static_cast<std::int64_t>(std::ceil(2 * radius_)) + (widened_ > 1 ? 1 : 0);
        for (std::int64_t k = 0; k < count; ++k) taps.push_back(tap(at, k));
        if (is_inside_ || widened_ > 1) normalize(taps);
        const WeightedPlaces first = taps.front();
        std::erase_if(taps, [](const WeightedPlaces& tap) {
            return std::ranges::all_of(tap.weights, [](double weight) { return weight == 0; });
        });
        if (taps.empty()) taps.push_back(first);  // all points are outside
        return taps;
    }

private:
    bool is_cubic() const { return mode_ == "cubic"; }

    void check() const {
        if (2 * radius_ * static_cast<double>(axis_.out) <= static_cast<double>(kLargestExtent) &&
            2 * radius_ <= static_cast<double>(kMostTaps))
            return;
        throw Refused(
            fmt::format(
                "mode is {} with antialias={:d}, and the scale {} makes {} weighted sums of {:.0f} elements; "
                "{} elements in all, and {} of a sum, are the most",
                mode_, antialias_, axis_.scale, axis_.out, 2 * radius_, kLargestExtent, kMostTaps),
            fmt::format("Export the model with {}a scale nearer to 1",
                        widened_ > 1 ? "antialias=0, or with " : ""));
    }

    /// Points far outside all elements count as the outermost point.
    double within_reach(float point) const {
        const auto last = static_cast<double>(axis_.size - 1);
        if (std::isnan(point)) return 0;
        if (!is_cubic() && widened_ == 1) return std::clamp(static_cast<double>(point), 0.0, last);
        const double margin = 4 * radius_ + 4;
        return std::clamp(static_cast<double>(point), -margin, last + margin);
    }

    WeightedPlaces tap(const std::vector<double>& points, std::int64_t k) const {
        WeightedPlaces found;
        for (const double point : points) {
            const std::int64_t place = static_cast<std::int64_t>(std::floor(point - radius_)) + 1 + k;
            const double distance = (static_cast<double>(place) - point) / widened_;
            const bool is_left_out = is_inside_ && (place < 0 || place >= axis_.size);
            const double weight =
                is_cubic() ? keys_weight(distance, a_) : std::max(1 - std::abs(distance), 0.0);
            found.places.push_back(std::clamp<std::int64_t>(place, 0, axis_.size - 1));
            found.weights.push_back(is_left_out ? 0 : weight);
        }
        return found;
    }

    ClosedAxis axis_;
    std::string mode_;
    double a_;
    bool antialias_, is_inside_;
    double widened_, radius_;
};

/// A weight for each element along an axis, the same for all behind it.
Operand along_axis(OpWriter& g, const Operand& x, int dim, const Operand& column) {
    return g.add_axes(column, g.rank(x) - 1 - dim);
}

Operand blended(OpWriter& g, const Operand& x, int dim, const std::vector<WeightedPlaces>& taps) {
    Operand total;
    for (const WeightedPlaces& tap : taps) {
        Operand part = g.op("gather", {x, known(tap.places)}, {{"axis", dim}});
        if (!std::ranges::all_of(tap.weights, [](double weight) { return weight == 1; })) {
            const Operand weights = g.cast(known(tap.weights, ElementType::f32), x->type);
            part = g.op("mul", {part, along_axis(g, x, dim, weights)});
        }
        total = total ? g.op("add", {total, part}) : part;
    }
    return total;
}

Operand nearest_along(OpWriter& g, const Operand& x, int dim, const ClosedAxis& axis,
                      const std::vector<float>& points, const std::string& rounding) {
    const CoordinateOf nearest = nearest_function(rounding);
    std::vector<std::int64_t> places(points.size());
    std::ranges::transform(points, places.begin(), [&](float point) {
        return place_inside(nearest(static_cast<double>(point)), axis.size);
    });
    if (axis.out == axis.size && places == counted_list(axis.size)) return x;
    return g.op("gather", {x, known(places)}, {{"axis", dim}});
}

}  // namespace

Operand resized_closed_axis(OpWriter& g, const Operand& x, int dim, const ResizedAxis& resized_axis,
                            const Node& node) {
    const ClosedAxis axis(resized_axis);
    const std::string transformation = transformation_of(node);
    const std::vector<float> points = points_along(axis, transformation);
    const Operand y =
        node.text("mode", "nearest") == "nearest"
            ? nearest_along(g, x, dim, axis, points, node.text("nearest_mode", "round_prefer_floor"))
            : blended(g, x, dim, InterpolationKernel(axis, node).taps(points));
    if (transformation != "tf_crop_and_resize") return y;
    std::vector<std::int64_t> outside;
    for (const float point : points)
        outside.push_back(point < 0 || point > static_cast<float>(axis.size - 1) ? 1 : 0);
    if (std::ranges::count(outside, 1) == 0) return y;
    const Operand is_outside_axis = along_axis(g, x, dim, known(outside, ElementType::boolean));
    return g.op("where", {is_outside_axis, known(extrapolation_of(node), x->type), y});
}

}  // namespace headrace::onnx
