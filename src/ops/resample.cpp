/// Resizing of images.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "emit/emit.h"
#include "ir/expression.h"
#include "ops/composed.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

enum class ResampleMode : std::uint8_t { nearest_neighbor, linear };
constexpr std::array<std::string_view, 2> enum_names(ResampleMode) { return {"nearest-neighbor", "linear"}; }

/// Where the points of linear interpolation lie.
enum class Coordinates : std::uint8_t {
    half_pixel,           ///< pixels are areas
    half_pixel_or_first,  ///< the same; a lone element of the output is the first of the input
    corners,              ///< the outermost elements lie on one another
    edges                 ///< the first elements do; the others as far apart as the extents tell
};
constexpr std::array<std::string_view, 4> enum_names(Coordinates) {
    return {"half_pixel", "half_pixel_or_first", "corners", "edges"};
}

struct ResampleAttrs {
    ResampleMode mode = ResampleMode::nearest_neighbor;
    std::vector<double> scales{1, 1};
    std::optional<Shape> sizes;
    std::vector<std::int64_t> axes{2, 3};
    static constexpr Coordinates coordinates = Coordinates::half_pixel;
    static void fields(auto&& f) {
        f("mode", &ResampleAttrs::mode, "how values between elements come about");
        f("scales", &ResampleAttrs::scales,
          "output extent / input extent of each axis; ignored when sizes are given");
        f("sizes", &ResampleAttrs::sizes, "output extent of each axis");
        f("axes", &ResampleAttrs::axes, "the two dimensions to resize, in either order");
    }
};

struct ResampleLinearAttrs {
    static constexpr ResampleMode mode = ResampleMode::linear;
    std::optional<Shape> sizes = Shape{1, 1};
    std::vector<std::int64_t> axes{2, 3};
    Coordinates coordinates = Coordinates::half_pixel;
    inline static const std::vector<double> scales{};
    static void fields(auto&& f) {
        f("sizes", &ResampleLinearAttrs::sizes, "output extent of each axis");
        f("axes", &ResampleLinearAttrs::axes, "the two dimensions to resize, in either order");
        f("coordinates", &ResampleLinearAttrs::coordinates, "where the output's elements lie in the input");
    }
};

/// Output coordinate o lies at (o + 1/2) * input / output - 1/2 of the input: pixels are areas, not points.
struct Tap {
    std::int64_t low, high;  ///< the elements around it
    double weight;           ///< of `high`
};

/// Nearest takes the lower one of two equally near elements: ceil(x - 1/2), here without rounding errors.
std::vector<Tap> nearest_taps(std::int64_t input, std::int64_t output) {
    std::vector<Tap> taps;
    for (std::int64_t o = 0; o < output; ++o) {
        const __int128 numerator =
            static_cast<__int128>(2 * o + 1) * input - 2 * static_cast<__int128>(output);
        const __int128 denominator = 2 * static_cast<__int128>(output);
        const __int128 up = numerator > 0 ? (numerator + denominator - 1) / denominator : 0;
        const std::int64_t at = std::min(static_cast<std::int64_t>(up), input - 1);
        taps.push_back({at, at, 0});
    }
    return taps;
}

/// nearest_taps() for devices: ceil(((2 o + 1) input - 2 output) / (2 output)) of the extents' ratio in
/// lowest terms. Half of one is taken from whole numerators, so that roundings of the quotient do not matter.
class NearestPositions {
public:
    NearestPositions(std::int64_t input, std::int64_t output)
        : input_(input),
          output_(output),
          p_(input / std::gcd(input, output)),
          q_(output / std::gcd(input, output)) {}

    Status are_exact() const {
        constexpr double kMost = 1 << 21;
        if (2 * static_cast<double>(output_) * static_cast<double>(p_) < kMost &&
            input_ < composed::kMostPositions)
            return success();
        return unsupported("{} elements from {}", output_, input_);
    }
    /// x[outer, input, inner] -> [outer, output, inner].
    ggml_tensor* pick(Emit& e, ggml_tensor* x) const {
        if (input_ == output_) return x;
        const auto p = static_cast<float>(p_), q = static_cast<float>(q_);
        ggml_tensor* numerator = e.scale(e.positions(output_), 2 * p, p - 2 * q - 0.5f);
        return composed::picked(e, x, e.unary(Unary::ceil, e.scale(numerator, 1 / (2 * q), 0)));
    }

private:
    std::int64_t input_, output_, p_, q_;
};

/// linear_taps() of the coordinates edges and half_pixel_or_first, which ggml has not: the point of element o
/// is (step * o + start) / parts of whole numbers, so that roundings of the quotient matter to neither its
/// neighbours nor their weights.
class LinearPositions {
public:
    LinearPositions(std::int64_t input, std::int64_t output, Coordinates coordinates)
        : input_(input), output_(output), step_(input), parts_(output) {
        const bool is_lone = output == 1;
        if (is_lone) step_ = 0, parts_ = 1;
        const std::int64_t common = std::gcd(step_, parts_);
        step_ /= common, parts_ /= common;
        if (coordinates == Coordinates::edges || is_lone) return;
        start_ = step_ - parts_;
        step_ *= 2, parts_ *= 2;
    }

    Status are_exact() const {
        constexpr double kMost = 1 << 21;
        if (static_cast<double>(output_) * static_cast<double>(step_) + static_cast<double>(parts_) < kMost &&
            input_ < composed::kMostPositions)
            return success();
        return unsupported("{} elements from {}", output_, input_);
    }
    /// x[outer, input, inner] -> [outer, output, inner].
    ggml_tensor* mix(Emit& e, ggml_tensor* x) const {
        if (input_ == output_ && start_ == 0 && step_ == parts_) return x;
        const auto parts = static_cast<float>(parts_);
        ggml_tensor* point =
            e.scale(e.positions(output_), static_cast<float>(step_), static_cast<float>(start_));
        point = e.clamp(point, 0, static_cast<float>(input_ - 1) * parts);
        ggml_tensor* low = e.unary(Unary::floor, e.scale(point, 1 / parts, 0.5f / parts));
        ggml_tensor* rest = e.binary(Binary::sub, point, e.scale(low, parts, 0));
        // What has no weight is a row of zeros, as 0 * infinity would be NaN.
        ggml_tensor* is_between = e.unary(Unary::step, rest);
        ggml_tensor* next = e.scale(low, 1, 1 - static_cast<float>(input_));
        next = e.scale(e.binary(Binary::mul, next, is_between), 1, static_cast<float>(input_));
        const std::array<std::int64_t, 3> none{0, 0, 0}, one{0, 1, 0}, row{1, output_, 1};
        ggml_tensor* high = composed::picked(e, e.pad_zero(x, none, one), next);
        ggml_tensor* weight = e.reshape(e.scale(rest, 1 / parts, 0), row);
        return e.binary(Binary::add,
                        e.binary(Binary::mul, composed::picked(e, x, low), e.scale(weight, -1, 1)),
                        e.binary(Binary::mul, high, weight));
    }

private:
    std::int64_t input_, output_, step_, parts_, start_ = 0;
};

/// The point of output element o is (o + shift) * ratio - shift.
struct Line {
    double ratio, shift;
};

Line line_of(std::int64_t input, std::int64_t output, Coordinates coordinates) {
    const double ratio = static_cast<double>(input) / static_cast<double>(output);
    switch (coordinates) {
        case Coordinates::corners:
            return {output == 1 ? 0 : static_cast<double>(input - 1) / static_cast<double>(output - 1), 0};
        case Coordinates::edges: return {ratio, 0};
        case Coordinates::half_pixel_or_first:
            if (output == 1) return {0, 0};
            [[fallthrough]];
        default: return {ratio, 0.5};
    }
}

std::vector<Tap> linear_taps(std::int64_t input, std::int64_t output, Coordinates coordinates) {
    std::vector<Tap> taps;
    const auto [ratio, shift] = line_of(input, output, coordinates);
    for (std::int64_t o = 0; o < output; ++o) {
        const double x =
            std::clamp((static_cast<double>(o) + shift) * ratio - shift, 0.0, static_cast<double>(input - 1));
        const auto low = static_cast<std::int64_t>(x);
        taps.push_back({low, std::min(low + 1, input - 1), x - static_cast<double>(low)});
    }
    return taps;
}

constexpr double kLargestScale = 0x1p53;

/// The two dimensions that are resized, the first of them first.
struct ResampledAxes {
    int rows, columns;
};

/// The tensor as [outer, height, middle, width, inner] around the two axes. Its lines are [width, inner].
struct Planes {
    std::int64_t outer, height, middle, width, inner;
    Planes(std::span<const std::int64_t> shape, ResampledAxes axes)
        : outer(extent_product(shape, 0, axes.rows)),
          height(shape[axes.rows]),
          middle(extent_product(shape, axes.rows + 1, axes.columns)),
          width(shape[axes.columns]),
          inner(extent_product(shape, axes.columns + 1, shape.size())) {}
    std::int64_t lines() const { return outer * middle * height; }
    /// Where a row of a plane begins.
    std::int64_t line_at(std::int64_t plane, std::int64_t row) const {
        return (plane / middle * height + row) * middle + plane % middle;
    }
};

double mix(double low, double high, double weight) {
    return weight == 0 ? low : low * (1 - weight) + high * weight;  // 0 * infinity would be NaN
}

template <class T>
T rounded(double value) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(std::nearbyint(value));
    else
        return static_cast<T>(static_cast<compute_t<T>>(value));
}

/// Neighbouring rows that have the same source are copies.
template <class T>
void resample_nearest(const TensorArgs& args, ResampledAxes axes) {
    const Planes in(args.in[0].shape, axes), out(args.out[0].shape, axes);
    const std::vector<Tap> rows = nearest_taps(in.height, out.height),
                           columns = nearest_taps(in.width, out.width);
    const std::int64_t width = out.width * out.inner;
    const auto part = args.share.of(out.lines());
    std::int64_t before = -1;
    for (std::int64_t r = part.begin; r < part.end; ++r) {
        const std::int64_t plane = r / out.height, row = r % out.height;
        const std::int64_t source = in.line_at(plane, rows[row].low);
        T* to = args.out[0].as<T>() + out.line_at(plane, row) * width;
        if (std::exchange(before, source) == source) {
            std::copy_n(to - out.middle * width, width, to);
            continue;
        }
        const T* from = args.in[0].as<T>() + source * in.width * in.inner;
        if (in.inner == 1)
            for (const Tap& column : columns) *to++ = from[column.low];
        else
            for (const Tap& column : columns) to = std::copy_n(from + column.low * in.inner, in.inner, to);
    }
}

template <class T>
void resample_linear(const TensorArgs& args, ResampledAxes axes, Coordinates coordinates) {
    const Planes in(args.in[0].shape, axes), out(args.out[0].shape, axes);
    const std::vector<Tap> rows = linear_taps(in.height, out.height, coordinates),
                           columns = linear_taps(in.width, out.width, coordinates);
    const auto at = [](const T* p, std::int64_t i) {
        return static_cast<double>(static_cast<compute_t<T>>(p[i]));
    };
    const std::int64_t in_width = in.width * in.inner, out_width = out.width * out.inner;
    const auto part = args.share.of(out.lines());
    for (std::int64_t r = part.begin; r < part.end; ++r) {
        const std::int64_t plane = r / out.height;
        const Tap& row = rows[r % out.height];
        const T* low = args.in[0].as<T>() + in.line_at(plane, row.low) * in_width;
        const T* high = args.in[0].as<T>() + in.line_at(plane, row.high) * in_width;
        T* to = args.out[0].as<T>() + out.line_at(plane, r % out.height) * out_width;
        for (const Tap& column : columns) {
            const std::int64_t left = column.low * in.inner, right = column.high * in.inner;
            for (std::int64_t c = 0; c < in.inner; ++c)
                *to++ =
                    rounded<T>(mix(mix(at(low, left + c), at(low, right + c), column.weight),
                                   mix(at(high, left + c), at(high, right + c), column.weight), row.weight));
        }
    }
}

/// One row of [columns][inner] floats made of two elements of `x` for each.
void resize_row(const float* x, const std::vector<Tap>& columns, std::int64_t inner, float* to) {
    for (const Tap& column : columns) {
        const float high = static_cast<float>(column.weight), low = static_cast<float>(1 - column.weight);
        const float *left = x + column.low * inner, *right = x + column.high * inner;
        if (column.weight == 0)  // 0 * infinity would be NaN
            std::copy_n(left, inner, to);
        else if (inner == 1)
            *to = *left * low + *right * high;
        else
            for (std::int64_t c = 0; c < inner; ++c) to[c] = left[c] * low + right[c] * high;
        to += inner;
    }
}

/// Each row of the input is resized once, and two of them are mixed for each row of the output.
void resample_linear_f32(const TensorArgs& args, ResampledAxes axes, Coordinates coordinates) {
    const Planes in(args.in[0].shape, axes), out(args.out[0].shape, axes);
    const std::vector<Tap> rows = linear_taps(in.height, out.height, coordinates),
                           columns = linear_taps(in.width, out.width, coordinates);
    struct Row {
        std::int64_t at = -1;  ///< which line of the input
        std::vector<float> values;
    };
    const std::int64_t width = out.width * out.inner;
    std::array<Row, 2> kept;
    for (Row& row : kept) row.values.resize(static_cast<std::size_t>(width));
    const auto fetch = [&](Row& row, std::int64_t at) {
        if (row.at == at) return;
        resize_row(args.in[0].as<float>() + at * in.width * in.inner, columns, in.inner, row.values.data());
        row.at = at;
    };
    const auto part = args.share.of(out.lines());
    for (std::int64_t r = part.begin; r < part.end; ++r) {
        const std::int64_t plane = r / out.height;
        const Tap& row = rows[r % out.height];
        const std::int64_t first = in.line_at(plane, row.low);
        if (kept[1].at == first) std::swap(kept[0], kept[1]);
        fetch(kept[0], first);
        float* to = args.out[0].as<float>() + out.line_at(plane, r % out.height) * width;
        const float* low = kept[0].values.data();
        if (row.weight == 0) {
            std::copy_n(low, width, to);
            continue;
        }
        fetch(kept[1], in.line_at(plane, row.high));
        const float* high = kept[1].values.data();
        const float below = static_cast<float>(row.weight), above = static_cast<float>(1 - row.weight);
        for (std::int64_t i = 0; i < width; ++i) to[i] = low[i] * above + high[i] * below;
    }
}

template <class OpAttrs>
struct Resample {
    static constexpr std::array operands{
        OperandRule{.name = "input",
                    .dtypes = kFloats | DTypeSet{DType::i8, DType::u8, DType::i16, DType::i32},
                    .min_rank = 4,
                    .max_rank = 4}};
    static constexpr LayoutRule layout = LayoutRule::axes;
    using Attrs = OpAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const std::vector<int> axes, normalize_axes(a.axes, in[0].rank()));
        if (axes.size() != 2) return invalid("axes {} must be two dimensions", str(a.axes));
        if (a.sizes && a.sizes->size() != 2)
            return invalid("sizes must have one entry per axis, got {}", a.sizes->size());
        if constexpr (std::is_same_v<Attrs, ResampleAttrs>) HR_TRY(check_scales(a.scales));
        TensorType out = in[0];
        for (std::size_t i = 0; i < 2; ++i) {
            Dim& extent = out.shape[normalize_axis(a.axes[i], in[0].rank()).value()];
            if (extent.is(0)) return invalid("input {} is empty and cannot be resized", str(in[0].shape));
            if (!a.sizes) {
                HR_ASSIGN(extent, scaled(extent, a.scales, i));
            } else {
                extent = (*a.sizes)[i];
                if (!extent.is_symbolic() && extent.size() < 1)
                    return invalid("sizes {} must be at least 1", str(*a.sizes));
            }
        }
        return Types{out};
    }

    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        if (infer(in, a).value()[0] == in[0]) return 0;
        return std::nullopt;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            if (a.mode == ResampleMode::linear)
                resample_linear<T>(args, resampled_axes(a), a.coordinates);
            else
                resample_nearest<T>(args, resampled_axes(a));
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        HR_TRY(works_through_f32(in[0].dtype));
        if (a.mode == ResampleMode::linear && has_ggml(a.coordinates)) return success();
        const Planes from(in[0].sizes(), resampled_axes(a)),
            to(infer(in, a).value()[0].sizes(), resampled_axes(a));
        if (a.mode == ResampleMode::linear) {
            HR_TRY(LinearPositions(from.height, to.height, a.coordinates).are_exact());
            return LinearPositions(from.width, to.width, a.coordinates).are_exact();
        }
        HR_TRY(NearestPositions(from.height, to.height).are_exact());
        return NearestPositions(from.width, to.width).are_exact();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const TensorType type = infer(in, a).value()[0];
        const Planes from(in[0].sizes(), resampled_axes(a)), to(type.sizes(), resampled_axes(a));
        ggml_tensor* y = to_f32(e, x[0], in[0].dtype);
        if (a.mode == ResampleMode::linear && has_ggml(a.coordinates))
            return {from_f32(e, lower_linear(e, y, from, to, a.coordinates == Coordinates::corners), type)};
        const std::array rows{from.outer, from.height, from.middle * from.width * from.inner},
            columns{from.outer * to.height * from.middle, from.width, from.inner};
        if (a.mode == ResampleMode::linear) {
            y = LinearPositions(from.height, to.height, a.coordinates).mix(e, e.reshape(y, rows));
            y = LinearPositions(from.width, to.width, a.coordinates).mix(e, e.reshape(y, columns));
            return {from_f32(e, y, type)};
        }
        y = NearestPositions(from.height, to.height).pick(e, e.reshape(y, rows));
        y = NearestPositions(from.width, to.width).pick(e, e.reshape(y, columns));
        return {from_f32(e, y, type)};
    }
    /// ggml's last dimensions are the planes'. There are two others, so that nothing lies on all three sides.
    static ggml_tensor* lower_linear(Emit& e, ggml_tensor* x, const Planes& from, const Planes& to,
                                     bool by_corners) {
        const std::array planes{from.outer * from.middle * from.inner, from.height, from.width},
            resized{to.outer * to.middle * to.inner, to.height, to.width};
        const auto between = [&](const std::array<std::int64_t, 4>& given, const std::array<int, 4>& turn,
                                 const std::array<std::int64_t, 4>& made, const std::array<int, 4>& back) {
            ggml_tensor* turned = e.contiguous(e.permute(e.reshape(x, given), turn));
            ggml_tensor* y = e.resize_linear(e.reshape(turned, planes), resized, by_corners);
            return e.contiguous(e.permute(e.reshape(y, made), back));
        };
        if (from.middle == 1 && from.inner == 1)
            return e.resize_linear(e.reshape(x, planes), resized, by_corners);
        if (from.middle == 1)
            return between({from.outer, from.height, from.width, from.inner}, {0, 3, 1, 2},
                           {to.outer, to.inner, to.height, to.width}, {0, 2, 3, 1});
        if (from.inner == 1)
            return between({from.outer, from.height, from.middle, from.width}, {0, 2, 1, 3},
                           {to.outer, to.middle, to.height, to.width}, {0, 2, 1, 3});
        return between({from.height, from.middle, from.width, from.inner}, {1, 3, 0, 2},
                       {to.middle, to.inner, to.height, to.width}, {2, 0, 3, 1});
    }

    static bool has_ggml(Coordinates coordinates) {
        return coordinates == Coordinates::half_pixel || coordinates == Coordinates::corners;
    }
    static bool is_resized(const Operands& in, std::span<const bool>, const void* attrs) {
        return !same_as(in, detail::attrs_ref<Attrs>(attrs));
    }
    static void run(const TensorArgs& args, const void* attrs) {
        reference(args, detail::attrs_ref<Attrs>(attrs));
    }
    static bool is_resized_linearly(const Operands& in, std::span<const bool> constants, const void* attrs) {
        return in[0].dtype == DType::f32 && detail::attrs_ref<Attrs>(attrs).mode == ResampleMode::linear &&
               is_resized(in, constants, attrs);
    }
    static void run_linear(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        resample_linear_f32(args, resampled_axes(a), a.coordinates);
    }
    /// ggml computes every element's position anew.
    static constexpr std::array kernels{
        KernelDef{.name = "resample_linear_f32", .applies = &is_resized_linearly, .run = &run_linear},
        KernelDef{.name = "resample_rows", .applies = &is_resized, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        return elementwise_cost(in, out, a.mode == ResampleMode::linear ? 9 : 0);
    }

private:
    static ResampledAxes resampled_axes(const Attrs& a) {
        const std::vector<int> axes = normalize_axes(a.axes, 4).value();
        return {axes[0], axes[1]};
    }

    /// Also where sizes are given, which then hold.
    static Status check_scales(std::span<const double> scales) {
        if (scales.size() != 2) return invalid("scales must have one entry per axis, got {}", scales.size());
        for (std::size_t i = 0; i < 2; ++i)
            if (!(scales[i] > 0 && scales[i] < kLargestScale))
                return invalid("scales[{}] is {:.6g}; it must be greater than 0 and less than {:.6g}", i,
                               scales[i], kLargestScale);
        return success();
    }

    static Result<Dim> scaled(const Dim& extent, std::span<const double> scales, std::size_t i) {
        const double scale = scales[i];
        const auto size = [&](std::int64_t n) {
            return static_cast<std::int64_t>(
                std::min(std::floor(static_cast<double>(n) * scale), kLargestScale));
        };
        if (extent.is_symbolic())
            return Dim::of(Expression(extent).scaled(scale),
                           {std::max<std::int64_t>(1, size(extent.min_size())), size(extent.max_size())});
        if (size(extent.size()) < 1)
            return invalid("scales[{}] is {:.6g}, which leaves nothing of extent {}", i, scale,
                           extent.size());
        return Dim(size(extent.size()));
    }
};

using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

Sample image_sample(DType t, Shape shape, NamedAttrs attrs) {
    return {{{.type = {t, std::move(shape)}, .low = 0, .high = 100}},
            std::move(attrs),
            t == DType::f16 ? 1e-3 : 1e-5};
}

struct Resample2d : Resample<ResampleAttrs> {
    static constexpr std::string_view name = "resample2d", summary = "the input resized along two axes";

    static std::vector<Sample> samples() {
        const auto& sample = image_sample;
        return {sample(DType::f32, {1, 2, 4, 6}, {{"sizes", Integers{7, 5}}, {"mode", "linear"}}),
                sample(DType::f32, {2, 1, 3, 2}, {{"scales", Reals{2, 2}}, {"mode", "linear"}}),
                sample(DType::f32, {2, 3, 3, 2},
                       {{"sizes", Integers{5, 4}}, {"axes", Integers{1, 2}}, {"mode", "linear"}}),
                sample(DType::f32, {1, 1, 4, 6}, {{"scales", Reals{0.5, 0.4}}}),
                sample(DType::f32, {2, 3, 5, 4}, {{"scales", Reals{2, 3}}}),
                sample(DType::f32, {2, 3, 5, 4}, {{"scales", Reals{3, 2}}, {"axes", Integers{1, 2}}}),
                sample(DType::f32, {2, 3, 5, 4}, {{"scales", Reals{3, 2}}, {"axes", Integers{0, 2}}}),
                sample(DType::u8, {2, 3, 5, 4}, {{"sizes", Integers{3, 5}}, {"axes", Integers{3, 0}}}),
                sample(DType::f32, {2, 3, 5, 4},
                       {{"sizes", Integers{5, 4}}, {"axes", Integers{0, 2}}, {"mode", "linear"}}),
                sample(DType::f32, {2, 3, 5, 4},
                       {{"sizes", Integers{5, 6}}, {"axes", Integers{3, 1}}, {"mode", "linear"}}),
                sample(DType::f16, {2, 3, 5, 4},
                       {{"sizes", Integers{3, 6}}, {"axes", Integers{0, 3}}, {"mode", "linear"}}),
                sample(DType::f16, {1, 2, 3, 2}, {{"sizes", Integers{3, 4}}, {"axes", Integers{3, 2}}}),
                sample(DType::f16, {1, 2, 3, 2}, {{"sizes", Integers{2, 4}}, {"mode", "linear"}}),
                sample(DType::u8, {1, 2, 3, 2}, {{"sizes", Integers{6, 4}}, {"mode", "linear"}}),
                sample(DType::i8, {2, 3, 1, 2}, {{"sizes", Integers{4, 4}}, {"axes", Integers{0, 1}}})};
    }
};

struct ResampleLinear2d : Resample<ResampleLinearAttrs> {
    static constexpr std::string_view name = "resample_linear2d",
                                      summary =
                                          "the input resized along two axes by linear "
                                          "interpolation, as exporters place the elements";

    static std::vector<Sample> samples() {
        const auto& sample = image_sample;
        return {sample(DType::f32, {1, 2, 4, 3}, {{"sizes", Integers{7, 1}}, {"coordinates", "corners"}}),
                sample(DType::f32, {1, 2, 4, 3},
                       {{"sizes", Integers{7, 1}}, {"coordinates", "half_pixel_or_first"}}),
                sample(DType::f32, {2, 3, 3, 2}, {{"sizes", Integers{5, 4}}, {"axes", Integers{1, 2}}}),
                sample(DType::u8, {1, 2, 3, 2}, {{"sizes", Integers{6, 4}}, {"coordinates", "corners"}}),
                sample(DType::f16, {1, 2, 4, 3}, {{"sizes", Integers{6, 5}}, {"coordinates", "edges"}}),
                sample(DType::f32, {2, 7, 5, 4},
                       {{"sizes", Integers{3, 9}}, {"axes", Integers{1, 3}}, {"coordinates", "edges"}}),
                sample(DType::f32, {3, 2, 5, 4},
                       {{"sizes", Integers{8, 2}},
                        {"axes", Integers{0, 2}},
                        {"coordinates", "half_pixel_or_first"}})};
    }
};

}  // namespace

std::span<const OpDef> resample_ops() { return OpList<Resample2d, ResampleLinear2d>::defs(); }

}  // namespace headrace::ops
