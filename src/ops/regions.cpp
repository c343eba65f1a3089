/// Regions of images: RoIAlign (He et al. 2017), RoI pooling (Girshick 2015), and crops.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <type_traits>

#include "ops/corners.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

/// As RoIAlign has it: up to one element outside the plane counts as its edge, more is 0.
Corners clamped_corners(double y, double x, std::int64_t height, std::int64_t width) {
    Corners c;
    if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width)))
        return c;
    const auto split = [](double v, std::int64_t size) {
        v = std::max(v, 0.0);
        const auto low = std::min(static_cast<std::int64_t>(v), size - 1);
        const bool is_last = low == size - 1;
        return std::tuple{low, is_last ? low : low + 1, is_last ? 0.0 : v - static_cast<double>(low)};
    };
    const auto [top, bottom, down] = split(y, height);
    const auto [left, right, across] = split(x, width);
    c.at = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
    c.weight = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
    return c;
}

struct RegionAttrs {
    std::int64_t height = 1, width = 1;
    double scale = 1;
    static void fields(auto&& f, auto self) {
        using A = typename decltype(self)::type;
        f("height", &A::height, "rows of the result for each region");
        f("width", &A::width, "columns of the result for each region");
        f("scale", &A::scale, "from the regions' coordinates to the image's elements");
    }
};

Result<Types> pooled_type(const Operands& in, const RegionAttrs& a, int columns) {
    if (a.height < 1 || a.width < 1 || a.height > INT32_MAX || a.width > INT32_MAX)
        return invalid("height {} and width {} must be at least 1", a.height, a.width);
    for (int axis : {2, 3})
        if (!in[0].shape[axis].is_symbolic() && in[0].shape[axis].size() < 1)
            return invalid("Wrong shape: the image {} has no elements", str(in[0].shape));
    if (!in[0].shape[0].is_symbolic() && in[0].shape[0].size() < 1)
        return invalid("Wrong shape: there is no image in {}", str(in[0].shape));
    if (!in[1].shape[1].is(columns))
        return invalid("Wrong shape: regions {} must have {} columns", str(in[1].shape), columns);
    return Types{{in[0].dtype, {in[1].shape[0], in[0].shape[1], Dim(a.height), Dim(a.width)}}};
}

enum class RegionPooling { avg, max };
constexpr std::array<std::string_view, 2> enum_names(RegionPooling) { return {"avg", "max"}; }

struct RoiAlignAttrs : RegionAttrs {
    std::int64_t sampling_ratio = 0;
    bool half_pixel = true;
    RegionPooling mode = RegionPooling::avg;
    static void fields(auto&& f) {
        RegionAttrs::fields(f, std::type_identity<RoiAlignAttrs>{});
        f("sampling_ratio", &RoiAlignAttrs::sampling_ratio,
          "points per row and column of a cell; 0: its size");
        f("half_pixel", &RoiAlignAttrs::half_pixel, "coordinates are of elements' edges, not centres");
        f("mode", &RoiAlignAttrs::mode, "what becomes of a cell's points");
    }
};

/// Where a region begins, and how large its cells are.
struct Grid {
    double top, left, cell_height, cell_width;
    std::int64_t rows, columns;  // of points in a cell

    template <class T>
    Grid(const T* roi, const RoiAlignAttrs& a) {
        const double offset = a.half_pixel ? 0.5 : 0.0;
        left = static_cast<double>(roi[0]) * a.scale - offset;
        top = static_cast<double>(roi[1]) * a.scale - offset;
        double width = static_cast<double>(roi[2]) * a.scale - offset - left;
        double height = static_cast<double>(roi[3]) * a.scale - offset - top;
        if (!a.half_pixel) {
            width = std::max(width, 1.0);
            height = std::max(height, 1.0);
        }
        cell_height = height / static_cast<double>(a.height);
        cell_width = width / static_cast<double>(a.width);
        rows = points(cell_height, a.sampling_ratio);
        columns = points(cell_width, a.sampling_ratio);
    }

    /// No more than anybody samples, so that a damaged region does not take forever.
    static std::int64_t points(double cell, std::int64_t ratio) {
        constexpr double kMost = 4096;
        if (ratio > 0) return ratio;
        return std::isfinite(cell) ? static_cast<std::int64_t>(std::clamp(std::ceil(cell), 0.0, kMost)) : 0;
    }
};

struct RoiAlign {
    static constexpr std::string_view name = "roi_align",
                                      summary =
                                          "regions of images as grids of cells, by points between elements";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kReal, .min_rank = 4, .max_rank = 4},
        OperandRule{.name = "regions", .dtypes = kReal, .same_dtype_as = 0, .min_rank = 2, .max_rank = 2},
        OperandRule{.name = "images", .dtypes = DTypeSet{DType::i64}, .min_rank = 1, .max_rank = 1}};
    using Attrs = RoiAlignAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (!same_extent(in, in[2].shape[0], in[1].shape[0]))
            return invalid("Shape mismatch: {} regions and {} numbers of images", in[1].shape[0].str(),
                           in[2].shape[0].str());
        if (a.sampling_ratio < 0 || a.sampling_ratio > 4096)
            return invalid("sampling_ratio must be from 0 to 4096, got {}", a.sampling_ratio);
        return pooled_type(in, a, 4);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_real(args.in[0].dtype, [&]<class T>() { pool<T>(args, a); });
    }

    template <class T>
    static void pool(const TensorArgs& args, const Attrs& a) {
        const Sizes image = args.in[0].shape;
        const std::int64_t channels = image[1], plane = image[2] * image[3], cells = a.height * a.width;
        const auto part = args.share.of(args.out[0].elements() / std::max<std::int64_t>(cells, 1));
        for (std::int64_t i = part.begin; i < part.end; ++i) {
            const std::int64_t region = i / channels;
            const Grid grid(args.in[1].as<T>() + region * 4, a);
            const std::int64_t n =
                std::clamp<std::int64_t>(args.in[2].as<std::int64_t>()[region], 0, image[0] - 1);
            const T* x = args.in[0].as<T>() + (n * channels + i % channels) * plane;
            T* y = args.out[0].as<T>() + i * cells;
            for (std::int64_t cell = 0; cell < cells; ++cell)
                y[cell] = static_cast<T>(value(x, grid, cell / a.width, cell % a.width, image, a.mode));
        }
    }

    template <class T>
    static double value(const T* x, const Grid& g, std::int64_t row, std::int64_t column, Sizes image,
                        RegionPooling mode) {
        double total = 0, most = -std::numeric_limits<double>::infinity();
        const std::int64_t count = g.rows * g.columns;
        for (std::int64_t i = 0; i < count; ++i) {
            const auto down = (static_cast<double>(i / g.columns) + 0.5) / static_cast<double>(g.rows);
            const auto across = (static_cast<double>(i % g.columns) + 0.5) / static_cast<double>(g.columns);
            const Corners c = clamped_corners(g.top + (static_cast<double>(row) + down) * g.cell_height,
                                              g.left + (static_cast<double>(column) + across) * g.cell_width,
                                              image[2], image[3]);
            if (mode == RegionPooling::avg)
                total += c.sum(x);
            else
                most = std::max(most, c.largest(x));
        }
        if (count == 0) return 0;
        return mode == RegionPooling::avg ? total / static_cast<double>(count) : most;
    }

    /// A point takes some 40 operations; how many there are by the regions' size only runs know.
    static Cost cost(const Operands&, std::span<const TensorType> out, const Attrs& a) {
        const auto bytes = static_cast<double>(out[0].bytes());
        const double ratio = static_cast<double>(std::max<std::int64_t>(a.sampling_ratio, 2));
        return {40 * ratio * ratio * static_cast<double>(out[0].elements()), 5 * bytes};
    }
    static std::vector<Sample> samples() {
        const auto sample = [](DType t, NamedAttrs attrs) {
            return Sample{{{.type = {t, {2, 3, 8, 9}}},
                           {.type = {t, {5, 4}}, .low = 0, .high = 9},
                           {.type = {DType::i64, {5}}, .low = 0, .high = 1}},
                          std::move(attrs)};
        };
        return {sample(DType::f32, {{"height", 3}, {"width", 2}}),
                sample(DType::f64, {{"height", 2}, {"width", 2}, {"sampling_ratio", 2}, {"mode", "max"}})};
    }
};

struct RoiMaxPoolAttrs : RegionAttrs {
    static void fields(auto&& f) { RegionAttrs::fields(f, std::type_identity<RoiMaxPoolAttrs>{}); }
};

struct RoiMaxPool {
    static constexpr std::string_view name = "roi_max_pool",
                                      summary = "the largest elements in a grid over each region of an image";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kReal, .min_rank = 4, .max_rank = 4},
        OperandRule{.name = "regions", .dtypes = kReal, .same_dtype_as = 0, .min_rank = 2, .max_rank = 2}};
    using Attrs = RoiMaxPoolAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) { return pooled_type(in, a, 5); }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_real(args.in[0].dtype, [&]<class T>() { pool<T>(args, a); });
    }

    /// A cell's first and last element along an axis: regions are in whole elements, their ends included.
    template <class T>
    static std::array<std::int64_t, 2> span(T first, T last, double scale, std::int64_t cell,
                                            std::int64_t cells, std::int64_t size) {
        const double begin = std::round(static_cast<double>(first) * scale);
        const double extent = std::max(std::round(static_cast<double>(last) * scale) - begin + 1, 1.0);
        const double step = extent / static_cast<double>(cells);
        const auto place = [&](double v) {
            return std::isnan(v) ? 0
                                 : static_cast<std::int64_t>(std::clamp(v, 0.0, static_cast<double>(size)));
        };
        return {place(std::floor(static_cast<double>(cell) * step) + begin),
                place(std::ceil(static_cast<double>(cell + 1) * step) + begin)};
    }

    template <class T>
    static void pool(const TensorArgs& args, const Attrs& a) {
        const Sizes image = args.in[0].shape;
        const std::int64_t channels = image[1], height = image[2], width = image[3],
                           cells = a.height * a.width;
        const auto part = args.share.of(args.out[0].elements());
        for (std::int64_t i = part.begin; i < part.end; ++i) {
            const std::int64_t cell = i % cells, channel = i / cells % channels;
            const T* roi = args.in[1].as<T>() + i / cells / channels * 5;
            const double number = std::isnan(static_cast<double>(roi[0])) ? 0 : static_cast<double>(roi[0]);
            const auto n =
                static_cast<std::int64_t>(std::clamp(number, 0.0, static_cast<double>(image[0] - 1)));
            const T* x = args.in[0].as<T>() + (n * channels + channel) * height * width;
            const auto [top, bottom] = span(roi[2], roi[4], a.scale, cell / a.width, a.height, height);
            const auto [left, right] = span(roi[1], roi[3], a.scale, cell % a.width, a.width, width);
            T most = top < bottom && left < right ? std::numeric_limits<T>::lowest() : T(0);
            for (std::int64_t row = top; row < bottom; ++row)
                for (std::int64_t column = left; column < right; ++column)
                    most = std::max(most, x[row * width + column]);
            args.out[0].as<T>()[i] = most;
        }
    }

    static Cost cost(const Operands&, std::span<const TensorType> out, const Attrs&) {
        const auto bytes = static_cast<double>(out[0].bytes());
        return {4 * bytes, 5 * bytes};
    }
    static std::vector<Sample> samples() {
        return {{{{.type = {DType::f32, {2, 3, 8, 9}}}, {.type = {DType::f32, {5, 5}}, .low = 0, .high = 7}},
                 {{"height", 3}, {"width", 2}}}};
    }
};

enum class PointSampling { linear, nearest };
constexpr std::array<std::string_view, 2> enum_names(PointSampling) { return {"linear", "nearest"}; }

/// A point's four elements: whole numbers are of one element, and the nearest of two halves is the further.
Corners sampled_corners(double y, double x, std::int64_t height, std::int64_t width, PointSampling mode) {
    const auto split = [mode](double v, std::int64_t size) {
        const double low = std::floor(mode == PointSampling::nearest ? v + 0.5 : v);
        const auto at = std::clamp<std::int64_t>(static_cast<std::int64_t>(low), 0, size - 1);
        const double part = mode == PointSampling::nearest ? 0 : v - low;
        return std::tuple{at, std::min(at + 1, size - 1), part};
    };
    const auto [top, bottom, down] = split(y, height);
    const auto [left, right, across] = split(x, width);
    Corners c;
    c.at = {top * width + left, top * width + right, bottom * width + left, bottom * width + right};
    c.weight = {(1 - down) * (1 - across), (1 - down) * across, down * (1 - across), down * across};
    return c;
}

/// Crops of TensorFlow's CropAndResize, which computes the places.
struct SampleRegions {
    static constexpr std::string_view name = "sample_regions",
                                      summary = "images at the rows and columns of each region";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kReal, .min_rank = 4, .max_rank = 4},
        OperandRule{.name = "rows", .dtypes = kReal, .same_dtype_as = 0, .min_rank = 2, .max_rank = 2},
        OperandRule{.name = "columns", .dtypes = kReal, .same_dtype_as = 0, .min_rank = 2, .max_rank = 2},
        OperandRule{.name = "images", .dtypes = DTypeSet{DType::i64}, .min_rank = 1, .max_rank = 1}};

    struct Attrs {
        PointSampling mode = PointSampling::linear;
        double outside = 0;
        static void fields(auto&& f) {
            f("mode", &Attrs::mode, "what a point between elements is");
            f("outside", &Attrs::outside, "what a point outside the image is");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) {
        const Dim& regions = in[3].shape[0];
        for (const int places : {1, 2})
            if (!same_extent(in, in[places].shape[0], regions))
                return invalid("Shape mismatch: {} numbers of images and places of {} regions", regions.str(),
                               in[places].shape[0].str());
        for (const Dim& extent : {in[0].shape[0], in[0].shape[2], in[0].shape[3]})
            if (!extent.is_symbolic() && extent.size() < 1)
                return invalid("Wrong shape: the images {} have no elements", str(in[0].shape));
        return Types{{in[0].dtype, {regions, in[0].shape[1], in[1].shape[1], in[2].shape[1]}}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_real(args.in[0].dtype, [&]<class T>() { sample<T>(args, a); });
    }

    template <class T>
    static void sample(const TensorArgs& args, const Attrs& a) {
        const Sizes image = args.in[0].shape, shape = args.out[0].shape;
        const std::int64_t channels = image[1], plane = image[2] * image[3], height = shape[2],
                           width = shape[3];
        const auto part = args.share.of(shape[0] * height);  // a row of points, of all channels
        for (std::int64_t i = part.begin; i < part.end; ++i) {
            const std::int64_t region = i / height, row = i % height;
            const std::int64_t n =
                std::clamp<std::int64_t>(args.in[3].as<std::int64_t>()[region], 0, image[0] - 1);
            const T* x = args.in[0].as<T>() + n * channels * plane;
            T* y = args.out[0].as<T>() + (region * channels * height + row) * width;
            const auto down = static_cast<double>(args.in[1].as<T>()[i]);
            for (std::int64_t column = 0; column < width; ++column, ++y) {
                const auto across = static_cast<double>(args.in[2].as<T>()[region * width + column]);
                const bool is_inside = down >= 0 && down <= static_cast<double>(image[2] - 1) &&
                                       across >= 0 && across <= static_cast<double>(image[3] - 1);
                const Corners c =
                    is_inside ? sampled_corners(down, across, image[2], image[3], a.mode) : Corners{};
                for (std::int64_t channel = 0; channel < channels; ++channel)
                    y[channel * height * width] =
                        static_cast<T>(is_inside ? c.sum(x + channel * plane) : a.outside);
            }
        }
    }

    static Cost cost(const Operands&, std::span<const TensorType> out, const Attrs&) {
        const auto bytes = static_cast<double>(out[0].bytes());
        return {8 * bytes, 5 * bytes};
    }
    static std::vector<Sample> samples() {
        const auto sample = [](DType t, NamedAttrs attrs) {
            return Sample{{{.type = {t, {2, 3, 8, 9}}},
                           {.type = {t, {5, 3}}, .low = -1, .high = 8},
                           {.type = {t, {5, 4}}, .low = 0, .high = 9},
                           {.type = {DType::i64, {5}}, .low = 0, .high = 1}},
                          std::move(attrs)};
        };
        return {sample(DType::f32, {{"outside", 2.0}}), sample(DType::f64, {{"mode", "nearest"}})};
    }
};

}  // namespace

std::span<const OpDef> regions_ops() { return OpList<RoiAlign, RoiMaxPool, SampleRegions>::defs(); }

}  // namespace headrace::ops
