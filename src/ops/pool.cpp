/// Two-dimensional pooling.
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/run_stop.h"
#include "kernels/int8/max_pool_bytes.h"
#include "kernels/tensor/pool2d_f32.h"
#include "ops/composed.h"
#include "ops/extents.h"
#include "ops/image.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/quantized.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

enum class Rounding : std::uint8_t { floor, ceil };
constexpr auto enum_names(Rounding) { return std::array<std::string_view, 2>{"floor", "ceil"}; }

using List = std::vector<std::int64_t>;

struct PoolAttrs {
    std::optional<List> window_dimensions;
    std::optional<Shape> output_sizes;
    List padding{0, 0, 0, 0}, strides{1, 1}, dilations{1, 1};
    ImageLayout layout = ImageLayout::nchw;
    Rounding output_shape_rounding = Rounding::floor;
    static void fields(auto&& f) {
        using A = PoolAttrs;
        f("window_dimensions", &A::window_dimensions,
          "height and width of the window; absent: the whole image");
        f("padding", &A::padding, "elements above, below, left and right of the image, which never count");
        f("strides", &A::strides, "vertical and horizontal step of the window");
        f("dilations", &A::dilations, "vertical and horizontal distance of the window's elements");
        f("layout", &A::layout, "order of the dimensions");
        f("output_shape_rounding", &A::output_shape_rounding,
          "whether a last window that sticks out is kept");
        f("output_sizes", &A::output_sizes, "the output's height and width, rounded down or up");
    }
};

/// The window, known once the input is: in canonical order, axis 0 is vertical.
struct Pooling {
    const PoolAttrs& attrs;
    Axes in, out;
    std::array<std::int64_t, 2> window;

    Pooling(const PoolAttrs& a, Sizes input, Sizes output)
        : attrs(a), in(input, image_axes(a.layout)), out(output, image_axes(a.layout)) {
        for (int i : {0, 1}) window[i] = a.window_dimensions ? (*a.window_dimensions)[i] : in.size[2 + i];
    }
    kernels::Pool2dArgs kernel_args(bool is_max) const {
        const auto n = [](std::int64_t v) { return static_cast<std::size_t>(v); };
        return {.is_max = is_max,
                .channels_last = attrs.layout == ImageLayout::nhwc,
                .batch = n(in.size[0]),
                .channels = n(in.size[1]),
                .in_h = n(in.size[2]),
                .in_w = n(in.size[3]),
                .out_h = n(out.size[2]),
                .out_w = n(out.size[3]),
                .window_h = n(window[0]),
                .window_w = n(window[1]),
                .stride_h = n(attrs.strides[0]),
                .stride_w = n(attrs.strides[1]),
                .dilation_h = n(attrs.dilations[0]),
                .dilation_w = n(attrs.dilations[1]),
                .pad_top = static_cast<std::ptrdiff_t>(attrs.padding[0]),
                .pad_left = static_cast<std::ptrdiff_t>(attrs.padding[2])};
    }
    struct Span {
        std::int64_t first, step, count;  ///< rows or columns of the input
    };
    /// The part of window `at` that lies inside the image.
    Span inside(int axis, std::int64_t at) const {
        const std::int64_t dilation = attrs.dilations[axis], size = in.size[2 + axis];
        const std::int64_t start = at * attrs.strides[axis] - attrs.padding[2 * axis];
        const std::int64_t begin = start >= 0 ? 0 : (-start + dilation - 1) / dilation;
        const std::int64_t end =
            start >= size ? 0 : std::min(window[axis], (size - start + dilation - 1) / dilation);
        return {start + begin * dilation, dilation, std::max<std::int64_t>(end - begin, 0)};
    }
};

Result<Dim> pooled_extent(const Operands& in, const Dim& size, int i, const PoolAttrs& a) {
    const char* what = i ? "Pool2d width" : "Pool2d height";
    const Dim kernel = a.window_dimensions ? Dim((*a.window_dimensions)[i]) : size;
    const Window window{kernel, a.strides[i], a.dilations[i], a.padding[2 * i], a.padding[2 * i + 1]};
    HR_ASSIGN(const Dim rounded,
              window_output(what, size, window, a.output_shape_rounding == Rounding::ceil));
    if (!a.output_sizes) return rounded;
    const Dim& wanted = (*a.output_sizes)[i];
    HR_ASSIGN(const Dim low, window_output(what, size, window, false));
    HR_ASSIGN(const Dim high, window_output(what, size, window, true));
    if (!at_least(in, wanted, 1) || !at_least(in, wanted, low) || !at_least(in, high, wanted))
        return invalid("{}: output_sizes has {} but {} or {} is possible", what, wanted.str(), low.str(),
                       high.str());
    return wanted;
}

/// What every pool here shares; Self gives name, summary and Sum, an accumulator of one window, and where
/// kVectors is set is_max, which of the two pools of kernels/pool2d_f32 it is. kHasBytes: bytes have a
/// kernel, too.
template <class Self, DTypeSet kTypes, bool kVectors, bool kHasBytes = false>
struct PoolOp {
    static constexpr std::array operands{OperandRule{
        .name = "input", .dtypes = kTypes, .min_rank = 4, .max_rank = 4, .title = "Pool2d input"}};
    static constexpr LayoutRule layout = LayoutRule::channels;
    using Attrs = PoolAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.window_dimensions) HR_TRY(check_values("window_dimensions", *a.window_dimensions, 2, 1));
        if (a.output_sizes && a.output_sizes->size() != 2)
            return invalid("output_sizes must have 2 values, got {}", str(*a.output_sizes));
        HR_TRY(check_values("padding", a.padding, 4, 0));
        HR_TRY(check_values("strides", a.strides, 2, 1));
        HR_TRY(check_values("dilations", a.dilations, 2, 1));
        TensorType out = in[0];
        for (int i : {0, 1}) {
            Dim& extent = out.shape[image_axes(a.layout)[2 + i]];
            HR_ASSIGN(extent, pooled_extent(in, extent, i, a));
        }
        return Types{std::move(out)};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Pooling p(a, args.in[0].shape, args.out[0].shape);
        const auto part = args.share.of(args.out[0].elements(), 16);
        StopCheck may_stop;
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                const auto at = [&](int axis) { return i / p.out.stride[axis] % p.out.size[axis]; };
                const auto rows = p.inside(0, at(2)), columns = p.inside(1, at(3));
                const T* x = args.in[0].as<T>() + at(0) * p.in.stride[0] + at(1) * p.in.stride[1] +
                             rows.first * p.in.stride[2] + columns.first * p.in.stride[3];
                typename Self::template Sum<T> sum;
                for (std::int64_t y = 0; y < rows.count; ++y) {
                    may_stop(static_cast<std::size_t>(columns.count));
                    for (std::int64_t z = 0; z < columns.count; ++z)
                        sum.add(x[y * rows.step * p.in.stride[2] + z * columns.step * p.in.stride[3]]);
                }
                args.out[0].as<T>()[i] = sum.result(rows.count * columns.count);
            }
        });
    }

    static bool vectors_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        if (in[0].dtype != DType::f32) return false;
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return kernels::pool2d_f32_applies(
            Pooling(a, in[0].sizes(), infer(in, a).value()[0].sizes()).kernel_args(false));
    }
    static void run_vectors(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        kernels::Pool2dArgs g = Pooling(a, args.in[0].shape, args.out[0].shape).kernel_args(Self::is_max);
        g.x = args.in[0].as<float>();
        g.y = args.out[0].as<float>();
        kernels::pool2d_f32(g, args.share.ith, args.share.nth);
    }

    static bool bytes_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        return kBytes.has(in[0].dtype) && detail::attrs_ref<Attrs>(attrs).layout == ImageLayout::nhwc;
    }
    static void run_bytes(const TensorArgs& args, const void* attrs) {
        const Pooling p(detail::attrs_ref<Attrs>(attrs), args.in[0].shape, args.out[0].shape);
        headrace::kernels::max_pool_bytes(p.kernel_args(true), bytes_of(args.in[0]), args.out[0].data,
                                          args.share.ith, args.share.nth);
    }

    // ggml's pools run on one thread and know neither dilation nor one-sided padding.
    static constexpr auto kernels = [] {
        constexpr KernelDef any{
            .name = "pool2d",
            .applies = [](const Operands&, std::span<const bool>, const void*) { return true; },
            .run = [](const TensorArgs& args,
                      const void* a) { reference(args, detail::attrs_ref<Attrs>(a)); }};
        if constexpr (kHasBytes)
            return std::array{KernelDef{.name = "pool2d_f32", .applies = &vectors_apply, .run = &run_vectors},
                              KernelDef{.name = "max_pool_bytes", .applies = &bytes_apply, .run = &run_bytes},
                              any};
        else if constexpr (kVectors)
            return std::array{KernelDef{.name = "pool2d_f32", .applies = &vectors_apply, .run = &run_vectors},
                              any};
        else
            return std::array{any};
    }();

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs& a) {
        const Pooling p(a, in[0].sizes(), out[0].sizes());
        return elementwise_cost(in, out, static_cast<double>(p.window[0] * p.window[1]));
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, Shape shape, NamedAttrs attrs) {
            if (!kTypes.has(t)) return;
            list.push_back({{{.type = {t, std::move(shape)}, .low = 0, .high = 20}},
                            std::move(attrs),
                            sample_tolerance(t)});
        };
        const NamedAttrs all{{"window_dimensions", List{3, 2}},
                             {"padding", List{1, 0, 2, 1}},
                             {"strides", List{2, 1}},
                             {"dilations", List{1, 2}},
                             {"output_shape_rounding", std::string("ceil")}};
        NamedAttrs all_nhwc = all;
        all_nhwc.emplace_back("layout", std::string("nhwc"));
        for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8, DType::u64}) {
            add(t, {2, 3, 5, 6}, {});
            add(t, {2, 5, 6, 3}, {{"layout", std::string("nhwc")}});
            add(t, {2, 3, 8, 7}, all);
            add(t, {2, 8, 7, 3}, all_nhwc);
        }
        add(DType::f32, {1, 2, 7, 7},
            {{"window_dimensions", List{2, 2}}, {"strides", List{2, 2}}, {"output_sizes", List{4, 3}}});
        add(DType::f32, {2, 3, 9, 21},
            {{"window_dimensions", List{3, 3}}, {"strides", List{2, 2}}, {"padding", List{1, 1, 1, 1}}});
        return list;
    }
};

Status spans_image(const Operands& in, const PoolAttrs& a) {
    const Axes axes(in[0].sizes(), image_axes(a.layout));
    for (int i : {0, 1})
        if (a.padding[2 * i] || a.padding[2 * i + 1] || (a.dilations[i] != 1 && axes.size[2 + i] != 1) ||
            (a.window_dimensions && (*a.window_dimensions)[i] != axes.size[2 + i]))
            return unsupported("a window smaller than the image");
    return success();
}

/// ggml's pools have the same padding on both sides and no window that sticks out beyond it.
Status is_plain_pool(const Operands& in, const PoolAttrs& a, Sizes output) {
    const Axes image(in[0].sizes(), image_axes(a.layout)), out(output, image_axes(a.layout));
    for (int i : {0, 1}) {
        const std::int64_t size = image.size[2 + i], padding = a.padding[2 * i];
        const std::int64_t window = a.window_dimensions ? (*a.window_dimensions)[i] : size;
        if (a.dilations[i] != 1) return unsupported("a window with holes");
        if (a.padding[2 * i + 1] != padding || padding >= window) return unsupported("uneven padding");
        if (out.size[2 + i] != (size + 2 * padding - window) / a.strides[i] + 1)
            return unsupported("a window that sticks out");
    }
    return success();
}

/// The image with channels first, and back.
ggml_tensor* channels_first(Emit& e, ggml_tensor* x, const PoolAttrs& a) {
    return a.layout == ImageLayout::nhwc ? e.contiguous(e.permute(x, image_axes(ImageLayout::nhwc))) : x;
}
ggml_tensor* as_before(Emit& e, ggml_tensor* y, const PoolAttrs& a) {
    return a.layout == ImageLayout::nhwc ? e.contiguous(e.permute(y, std::array{0, 2, 3, 1})) : y;
}

std::array<std::int64_t, 2> window_of(const Operands& in, const PoolAttrs& a) {
    if (a.window_dimensions) return {(*a.window_dimensions)[0], (*a.window_dimensions)[1]};
    const Axes axes(in[0].sizes(), image_axes(a.layout));
    return {axes.size[2], axes.size[3]};
}

/// ggml's pool of one kind, in f32.
ggml_tensor* lower_plain_pool(Emit& e, ggml_tensor* image, const Operands& in, const PoolAttrs& a,
                              bool is_max) {
    return e.pool_2d(image, is_max, window_of(in, a), a.strides, std::array{a.padding[0], a.padding[2]});
}

/// All windows' elements, and each row of the image with its padding, have to be numbers of 32 bits.
Status fits_32_bits(const Operands& in, const PoolAttrs& a, const TensorType& out) {
    const auto window = window_of(in, a);
    const Axes to(out.sizes(), image_axes(a.layout));
    double all = static_cast<double>(to.size[0] * to.size[1]);
    for (int i : {0, 1}) {
        const double reach = static_cast<double>(to.size[2 + i]) * static_cast<double>(a.strides[i]) +
                             static_cast<double>(window[i]) * static_cast<double>(a.dilations[i]);
        if (reach > INT32_MAX) return unsupported("windows that reach over {} rows or columns", reach);
        all *= static_cast<double>(to.size[2 + i]) * static_cast<double>(window[i]);
    }
    if (all > INT32_MAX) return unsupported("windows of {} elements together", all);
    return success();
}

/// A pool as rows of what its windows hold, `beside` where they stick out of the image: 0 or -infinity.
struct WindowRows {
    ggml_tensor* values = nullptr;    ///< [windows, elements]
    std::vector<std::int64_t> shape;  ///< of the windows, with channels first

    WindowRows(Emit& e, ggml_tensor* image, const Operands& in, const PoolAttrs& a, Sizes output,
               bool is_max) {
        const Axes from(in[0].sizes(), image_axes(a.layout)), to(output, image_axes(a.layout));
        const auto window = window_of(in, a);
        const std::array<std::int64_t, 3> planes{from.size[0] * from.size[1], from.size[2], from.size[3]};
        std::array<std::int64_t, 3> before{0, a.padding[0], a.padding[2]}, after{0, 0, 0};
        for (int i : {0, 1}) {  // as far as the windows reach, which need not be all of the padding
            const std::int64_t reach =
                (to.size[2 + i] - 1) * a.strides[i] + (window[i] - 1) * a.dilations[i] + 1;
            after[1 + i] = std::max<std::int64_t>(reach - before[1 + i] - from.size[2 + i], 0);
        }
        ggml_tensor* x =
            composed::pad(e, e.reshape(image, planes), before, after, is_max ? -composed::kInfinity : 0);
        x = e.windows(x, window, a.strides, std::array<std::int64_t, 2>{0, 0}, a.dilations);
        values = cut(e, x, to, window[0] * window[1]);
        shape = {to.size[0], to.size[1], to.size[2], to.size[3]};
    }

private:
    /// Without windows beyond the output, which an image that is larger than they reach has.
    ggml_tensor* cut(Emit& e, ggml_tensor* x, const Axes& to, std::int64_t elements) {
        const std::array<std::int64_t, 4> start{0, 0, 0, 0},
            wanted{to.size[0] * to.size[1], to.size[2], to.size[3], elements};
        const std::array<std::int64_t, 2> rows{wanted[0] * wanted[1] * wanted[2], elements};
        return e.reshape(e.contiguous(e.slice(x, start, wanted)), rows);
    }
};

/// Pools over whole images are reductions of rows, which ggml does well, as it does pools with the same
/// padding on both sides; of others all windows are written out. Self has pool(), one of ggml's, and
/// reduce_rows().
template <class Self, DTypeSet kTypes, bool kVectors, bool kHasBytes = false>
struct LoweredPoolOp : PoolOp<Self, kTypes, kVectors, kHasBytes> {
    static Status lowerable(const Operands& in, const PoolAttrs& a) {
        HR_TRY(works_through_f32(in[0].dtype));
        return fits_32_bits(in, a, Self::infer(in, a).value()[0]);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const PoolAttrs& a) {
        const auto [batch, channels, height, width] = Axes(in[0].sizes(), image_axes(a.layout)).size;
        const TensorType out = Self::infer(in, a).value()[0];
        const std::vector<std::int64_t> output = out.sizes();
        ggml_tensor* image = channels_first(e, to_f32(e, x[0], in[0].dtype), a);
        if (spans_image(in, a).ok()) {
            const std::array rows{batch * channels, height * width};
            return {from_f32(e, Self::reduce_rows(e, e.reshape(image, rows)), out)};
        }
        // ggml counts what is beside the image, too.
        const bool counts_beside = Self::divides && (a.padding[0] || a.padding[2]);
        if (!counts_beside && is_plain_pool(in, a, output).ok())
            return {from_f32(e, as_before(e, Self::pool(e, image, in, a), a), out)};
        const WindowRows rows(e, image, in, a, output, Self::is_max);
        ggml_tensor* y = Self::reduce_rows(e, rows.values);
        if (Self::divides) {
            // The share of the image in the windows, of which there is one at least.
            const WindowRows places(e, e.fill(image, 1), in, a, output, false);
            ggml_tensor* share = e.mean_rows(places.values);
            y = e.binary(Binary::div, y,
                         e.binary(Binary::add, share, composed::without(e, e.unary(Unary::step, share))));
        }
        return {from_f32(e, as_before(e, e.reshape(y, rows.shape), a), out)};
    }
};

struct AveragePool2d : LoweredPoolOp<AveragePool2d, kFloats, true> {
    static constexpr std::string_view name = "average_pool2d",
                                      summary = "mean of the image's elements in a window";
    static constexpr bool is_max = false;
    template <class T>
    struct Sum {
        double sum = 0;
        void add(T x) { sum += convert<double>(x); }
        /// A window without any element of the image gives 0.
        T result(std::int64_t count) const {
            return convert<T>(count ? sum / static_cast<double>(count) : 0.0);
        }
    };
    static constexpr bool divides = true;
    static ggml_tensor* reduce_rows(Emit& e, ggml_tensor* x) { return e.mean_rows(x); }
    static ggml_tensor* pool(Emit& e, ggml_tensor* image, const Operands& in, const PoolAttrs& a) {
        return lower_plain_pool(e, image, in, a, false);
    }
};

struct L2Pool2d : LoweredPoolOp<L2Pool2d, kFloats, false> {
    static constexpr std::string_view name = "l2_pool2d", summary = "root of the sum of squares in a window";
    static constexpr bool is_max = false;
    template <class T>
    struct Sum {
        double sum = 0;
        void add(T x) { sum += convert<double>(x) * convert<double>(x); }
        T result(std::int64_t) const { return convert<T>(std::sqrt(sum)); }
    };
    static constexpr bool divides = false;
    static ggml_tensor* reduce_rows(Emit& e, ggml_tensor* x) {
        return e.unary(Unary::sqrt, e.sum_rows(e.unary(Unary::square, x)));
    }
    static ggml_tensor* pool(Emit& e, ggml_tensor* image, const Operands& in, const PoolAttrs& a) {
        const auto [height, width] = window_of(in, a);
        ggml_tensor* mean = lower_plain_pool(e, e.unary(Unary::square, image), in, a, false);
        return e.unary(Unary::sqrt, e.scale(mean, static_cast<float>(height * width), 0));
    }
};

struct MaxPool2d : LoweredPoolOp<MaxPool2d, kNumeric, true, true> {
    static constexpr std::string_view name = "max_pool2d",
                                      summary = "largest of the image's elements in a window";
    static constexpr bool is_max = true, divides = false;
    template <class T>
    struct Sum {
        using C = compute_t<T>;
        using Limits = std::numeric_limits<C>;
        /// What a window without any element of the image gives.
        C largest = Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
        void add(T element) {
            const C x = static_cast<C>(element);
            if (x > largest || x != x) largest = x;  // NaN stays: nothing is greater
        }
        T result(std::int64_t) const { return static_cast<T>(largest); }
    };

    static ggml_tensor* reduce_rows(Emit& e, ggml_tensor* x) { return composed::largest_of_rows(e, x); }
    static ggml_tensor* pool(Emit& e, ggml_tensor* image, const Operands& in, const PoolAttrs& a) {
        return composed::largest_of(
            e, image, [&](ggml_tensor* x) { return lower_plain_pool(e, x, in, a, true); },
            [&](ggml_tensor* x) { return lower_plain_pool(e, x, in, a, false); });
    }
};

}  // namespace

std::span<const OpDef> pool_ops() { return OpList<AveragePool2d, L2Pool2d, MaxPool2d>::defs(); }

}  // namespace headrace::ops
