#include <array>
#include <cstdint>

#include "doors/onnx/reading/numbers.h"
#include "doors/onnx/reading/operators.h"

/// Images and volumes sampled at given points.
namespace headrace::onnx {
namespace {

enum class Sampling : std::uint8_t { linear, nearest, cubic };

Sampling sampling_of(const std::string& mode) {
    if (mode == "linear" || mode == "bilinear") return Sampling::linear;
    if (mode == "cubic" || mode == "bicubic") return Sampling::cubic;
    invalid_if(mode != "nearest", "mode is '{}'; linear, nearest and cubic are ONNX's", mode);
    return Sampling::nearest;
}

/// A whole coordinate near a point, and what the elements there count.
struct SampleTap {
    Operand place, weight;
};

/// [n, c, sizes...], sampled at points [n, places..., axes] whose coordinates are within [-1, 1].
class SampledImage {
public:
    SampledImage(OpWriter& g, const Operand& image, Sampling mode, std::string padding, bool align_corners)
        : g_(g),
          image_(image),
          mode_(mode),
          padding_(std::move(padding)),
          align_corners_(align_corners),
          shape_(g.shape(image)),
          sizes_(shape_.begin() + 2, shape_.end()) {}

    /// In elements of the image, rounded for the nearest one, and brought inside it by the padding.
    Operand coordinate(const Operand& grid, std::size_t axis) const {
        const Dim& size = sizes_[axis];
        const std::size_t last = sizes_.size() - 1 - axis;  // grids have the last axis first
        Shape places = g_.shape(grid);
        const auto rank = static_cast<int>(places.size());
        places.pop_back();
        Operand x = g_.reshape(g_.cut(grid, rank - 1, static_cast<std::int64_t>(last), 1), places);
        // [-1, 1] are the centres of the outermost elements, or their outer edges
        x = g_.times(x, Item(align_corners_ ? size - 1 : size, 2));
        x = g_.plus(x, Item(size - 1, 2));
        if (mode_ == Sampling::cubic) return x;  // the elements around it are brought inside
        if (mode_ == Sampling::nearest) x = g_.op("round_even", {x});
        return inside(x, size);
    }

    /// The elements at whole coordinates, zero outside.
    Operand at(std::vector<Operand> places) const {
        const Shape shape = g_.shape(places.at(0));
        if (mode_ == Sampling::cubic)
            for (std::size_t i = 0; i < places.size(); ++i) places[i] = inside(places[i], sizes_[i]);
        Operand is_inside, where;
        for (std::size_t i = 0; i < places.size(); ++i) {
            const Item last(sizes_[i] - 1);
            const Operand first_holds = g_.op("greater_or_equal", {places[i], known(0, image_->type)});
            is_inside = is_inside ? g_.op("logical_and", {is_inside, first_holds}) : first_holds;
            const Operand last_holds =
                g_.op("lesser_or_equal", {places[i], g_.at_run_time(last, image_->type)});
            is_inside = g_.op("logical_and", {is_inside, last_holds});
            const Operand step = g_.cast(g_.within(places[i], 0, last), ElementType::i64);
            where = where ? g_.op("add", {g_.times(where, Item(sizes_[i])), step}) : step;
        }
        const Dim count = product_of(std::span(shape).subspan(1));
        const Shape rows{shape_[0], shape_[1], count};
        where = g_.expand(g_.reshape(where, {shape_[0], 1, count}), rows);
        const Operand flat = g_.reshape(image_, {shape_[0], shape_[1], product_of(sizes_)});
        Operand taken = g_.op("gather_elements", {flat, where}, {{"axis", 2}});
        Shape wanted{shape_[0], shape_[1]};
        wanted.insert(wanted.end(), shape.begin() + 1, shape.end());
        taken = g_.reshape(taken, wanted);
        return g_.op("where", {for_channels(is_inside), taken, known(0, image_->type)});
    }

    /// [n, places...] as [n, 1, places...]
    Operand for_channels(const Operand& x) const {
        Shape wanted = g_.shape(x);
        wanted.insert(wanted.begin() + 1, 1);
        return g_.reshape(x, wanted);
    }

private:
    Operand inside(const Operand& x, const Dim& size) const {
        const Operand place = padding_ == "reflection" ? reflected(x, size) : x;
        return padding_ == "zeros" ? place : g_.within(place, 0, Item(size - 1));
    }

    Operand reflected(const Operand& x, const Dim& size) const {
        const double low = align_corners_ ? 0.0 : -0.5;
        const Dim own = align_corners_ ? size - 1 : size;
        if (is_same(own, 0)) return g_.times(x, 0.0);
        const Item period(Dim(2) * largest({own, 1}));  // of one element all else is clamped
        const Operand away = g_.op("abs", {g_.plus(x, -low)});
        const Operand place = g_.op("remainder", {away, g_.at_run_time(period, image_->type)});
        const Operand back = g_.plus(g_.op("neg", {place}), period);
        return g_.plus(g_.op("min", {place, back}), low);
    }

    OpWriter& g_;
    Operand image_;
    Sampling mode_;
    std::string padding_;
    bool align_corners_;
    Shape shape_, sizes_;
};

/// Keys' weight of a distance within 1, or between 1 and 2.
Operand cubic_weight(OpWriter& g, const Operand& d, bool is_near) {
    constexpr double a = -0.75;
    const std::array<double, 4> factors =
        is_near ? std::array{a + 2, -(a + 3), 0.0, 1.0} : std::array{a, -5 * a, 8 * a, -4 * a};
    Operand total = g.times(d, factors[0]);
    total = g.op("mul", {g.plus(total, factors[1]), d});
    total = g.op("mul", {g.plus(total, factors[2]), d});
    return g.plus(total, factors[3]);
}

/// The whole coordinates around one, each with its weight.
std::vector<SampleTap> taps_around(OpWriter& g, const Operand& x, bool is_cubic) {
    const Operand base = g.op("floor", {x});
    std::vector<SampleTap> taps;
    for (int offset = is_cubic ? -1 : 0; offset < (is_cubic ? 3 : 2); ++offset) {
        const Operand place = g.plus(base, static_cast<double>(offset));
        const Operand away = g.op("abs", {g.op("sub", {x, place})});
        const bool is_near = offset == 0 || offset == 1;
        taps.push_back({place, is_cubic ? cubic_weight(g, away, is_near)
                                        : g.op("linear", {away}, {{"alpha", -1.0}, {"beta", 1.0}})});
    }
    return taps;
}

/// The sum over all combinations of the axes' taps; the last axis' change first.
Operand interpolated(OpWriter& g, const SampledImage& image,
                     const std::vector<std::vector<SampleTap>>& taps) {
    std::size_t corners = 1;
    for (const auto& of_axis : taps) corners *= of_axis.size();
    Operand total;
    for (std::size_t corner = 0; corner < corners; ++corner) {
        std::vector<Operand> places;
        Operand weight;
        std::size_t left = corner, below = corners;
        for (const auto& of_axis : taps) {
            below /= of_axis.size();
            const SampleTap& tap = of_axis[left / below];
            left %= below;
            places.push_back(tap.place);
            weight = weight ? g.op("mul", {weight, tap.weight}) : tap.weight;
        }
        const Operand part = g.op("mul", {image.at(places), image.for_channels(weight)});
        total = total ? g.op("add", {total, part}) : part;
    }
    return total;
}

/// Points whose number of coordinates is that of the image's axes, also where a run has to show that.
Operand grid_of(OpWriter& g, const Operand& image, const Operand& grid) {
    Shape shape = g.shape(grid);
    const std::int64_t dims = g.rank(image) - 2;
    const bool fits = static_cast<std::int64_t>(shape.size()) == dims + 2;
    if (fits && !shape.empty() && shape.back().is_symbolic()) shape.back() = dims;
    refuse_if(
        (dims != 2 && dims != 3) || !fits || !shape.back().is(dims),
        "the image has {} dimensions and the grid the shape {}; images of 4 and volumes of 5 are read, whose "
        "grids end in 2 and 3",
        dims + 2, str(shape));
    return g.cast(g.reshape(grid, shape), image->type);
}

Operand grid_sample(OpWriter& g, const Node& node) {
    const Operand image = node.x();
    const Sampling mode = sampling_of(node.text("mode", "linear"));
    const std::string padding = node.text("padding_mode", "zeros");
    invalid_if(padding != "zeros" && padding != "border" && padding != "reflection",
               "padding_mode is '{}'; zeros, border and reflection are ONNX's", padding);
    const Operand grid = grid_of(g, image, node.operand(1));
    const auto axes = static_cast<std::size_t>(g.rank(image)) - 2;
    refuse_if(axes == 3 && mode == Sampling::cubic,
              "mode is 'cubic' for a volume; ONNX defines it for images");
    const SampledImage source(g, image, mode, padding, node.flag("align_corners", false));
    std::vector<Operand> points;
    for (std::size_t axis = 0; axis < axes; ++axis) points.push_back(source.coordinate(grid, axis));
    if (mode == Sampling::nearest) return source.at(points);
    std::vector<std::vector<SampleTap>> taps;
    for (const Operand& x : points) taps.push_back(taps_around(g, x, mode == Sampling::cubic));
    return interpolated(g, source, taps);
}

/// The centers of the elements along an axis from -1 to 1, f32: the outermost lie at its ends, or touch them.
/// A lone one that would lie at both ends is at 1.
Operand centers_along(OpWriter& g, const Dim& extent, bool align_corners) {
    const Operand place = g.cast(g.positions(extent), ElementType::f32);
    const Operand count = g.at_run_time(Item(extent), ElementType::f32);
    if (!align_corners) {
        const Operand doubled = g.op("linear", {place}, {{"alpha", 2.0}, {"beta", 1.0}});
        return g.plus(g.op("div", {doubled, count}), -1.0);
    }
    const Operand one = known(1, ElementType::f32), last = g.plus(count, -1.0);
    const Operand is_lone = g.op("equal", {last, known(0, ElementType::f32)});
    const Operand apart = g.op("div", {g.times(place, 2.0), g.op("where", {is_lone, one, last})});
    return g.op("where", {is_lone, one, g.plus(apart, -1.0)});
}

/// Where theta [n, 2, 3] or [n, 3, 4] puts each element of an image: [n, h, w, 2] or [n, d, h, w, 3].
Operand affine_grid(OpWriter& g, const Node& node) {
    const Operand theta = node.x();
    std::optional<std::size_t> count;  // of a size that tells it: as theta has it
    if (g.rank(theta) == 3 && !g.shape(theta)[1].is_symbolic())
        count = static_cast<std::size_t>(g.shape(theta)[1].size()) + 2;
    const Shape sizes = dims_of(g, node, 1, "the size", count);
    refuse_if(sizes.size() != 4 && sizes.size() != 5, "the size is {}; an image has 4 extents and a volume 5",
              str(sizes));
    invalid_if(g.rank(theta) != 3, "theta (input 0) has {} dimensions; 3 are ONNX's", g.rank(theta));
    const Shape extents(sizes.begin() + 2, sizes.end());
    const Dim points = product_of(extents);
    std::vector<Operand> columns;
    for (std::size_t i = extents.size();
         i-- > 0;) {  // x is the last coordinate of an image, and here the first
        Operand line = g.cast(centers_along(g, extents[i], node.flag("align_corners", false)), theta->type);
        Shape own(extents.size(), 1);
        own[i] = extents[i];
        line = g.expand(g.reshape(line, own), extents);
        columns.push_back(g.reshape(line, {points, 1}));
    }
    columns.push_back(g.filled(1, theta->type, {points, 1}));
    const Operand grid = g.op("matmul", {g.concat(columns, 1), g.transpose(theta, {0, 2, 1})});
    Shape wanted{sizes[0]};
    wanted.insert(wanted.end(), extents.begin(), extents.end());
    wanted.emplace_back(static_cast<std::int64_t>(extents.size()));
    return g.reshape(grid, wanted);
}

}  // namespace

std::span<const Operator> sampling_operators() {
    static const Operator kOperators[] = {
        {"AffineGrid", 20, affine_grid, "2 -> 1, align_corners int"},
        {"GridSample", 16, grid_sample, "2 -> 1, align_corners int, mode string, padding_mode string"}};
    return kOperators;
}

}  // namespace headrace::onnx
