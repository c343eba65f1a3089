/// Normalisation by channel: with given statistics, or with those of each image.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/tensor/normalize_f32.h"
#include "kernels/tensor/reduce_f32.h"
#include "ops/image.h"
#include "ops/infer.h"
#include "ops/normalize.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

Status check_vector(const Operands& in, std::string_view what, const Shape& shape, const Dim& size) {
    if (same_shape(in, shape, {size})) return success();
    return invalid("{} has shape {} but must have shape [{}]", what, str(shape), size.str());
}

/// What batch and instance normalisation share: a per-channel scale and bias over [outer, channels, inner].
struct Channels {
    std::int64_t outer = 1, count = 1, inner = 1;

    Channels(Sizes shape, std::size_t axis) : count(shape[axis]) {
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (i != axis) (i < axis ? outer : inner) *= shape[i];
    }
    /// A vector of one value per channel, ready to be combined with [outer, count, inner].
    ggml_tensor* vector(Emit& e, ggml_tensor* v, DType t) const {
        return e.reshape(to_f32(e, v, t), std::array<std::int64_t, 2>{count, 1});
    }
};

/// What becomes of a channel, whose scale is an operand that the bias follows; either may be absent.
headrace::kernels::ShiftAndScale shift_and_scale(const TensorArgs& args, std::size_t scale,
                                                 std::int64_t channel, double mean, double variance) {
    return {mean, read_or<float>(args, scale, channel, 1) / std::sqrt(variance),
            read_or<float>(args, scale + 1, channel, 0)};
}

struct BatchNormalization {
    static constexpr std::string_view name = "batch_normalization",
                                      summary =
                                          "scale (x - mean) / sqrt(variance + epsilon) + bias, by channel";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats},
        OperandRule{.name = "mean", .dtypes = kFloats, .same_dtype_as = 0},
        OperandRule{.name = "variance", .dtypes = kFloats, .same_dtype_as = 0},
        OperandRule{.name = "scale", .dtypes = kFloats, .same_dtype_as = 0, .optional = true},
        OperandRule{.name = "bias", .dtypes = kFloats, .same_dtype_as = 0, .optional = true}};
    static constexpr LayoutRule layout = LayoutRule::axes;

    struct Attrs {
        std::int64_t axis = 1;
        double epsilon = 1e-5;
        static void fields(auto&& f) {
            f("axis", &Attrs::axis, "the channels");
            f("epsilon", &Attrs::epsilon, "added to the variance");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        for (int i = 1; i < 5; ++i)
            if (in.has(i)) HR_TRY(check_vector(in, operands[i].name, in[i].shape, in[0].shape[axis]));
        return same_type(in[0]);
    }

    static Channels channels(Sizes shape, const Attrs& a) {
        return {shape, static_cast<std::size_t>(a.axis < 0 ? a.axis + static_cast<std::int64_t>(shape.size())
                                                           : a.axis)};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Channels c = channels(args.in[0].shape, a);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            std::vector<double> mean(c.count), factor(c.count), bias(c.count);
            for (std::int64_t i = 0; i < c.count; ++i) {
                mean[i] = convert<double>(args.in[1].as<T>()[i]);
                factor[i] =
                    read_or<T>(args, 3, i, 1) / std::sqrt(convert<double>(args.in[2].as<T>()[i]) + a.epsilon);
                bias[i] = read_or<T>(args, 4, i, 0);
            }
            const auto apply = [&](std::int64_t at, std::int64_t i) {
                args.out[0].as<T>()[at] =
                    convert<T>((convert<double>(args.in[0].as<T>()[at]) - mean[i]) * factor[i] + bias[i]);
            };
            if (c.inner == 1) {
                const auto part = args.share.of(c.outer);
                for (std::int64_t o = part.begin; o < part.end; ++o)
                    for (std::int64_t i = 0; i < c.count; ++i) apply(o * c.count + i, i);
                return;
            }
            const auto part = args.share.of(c.outer * c.count);
            for (std::int64_t plane = part.begin; plane < part.end; ++plane)
                for (std::int64_t i = 0; i < c.inner; ++i) apply(plane * c.inner + i, plane % c.count);
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return normalizes_through_f32(in[0].dtype, a.epsilon);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        const Channels c = channels(in[0].sizes(), a);
        const auto vector = [&](int i) { return c.vector(e, x[i], t); };
        ggml_tensor* y = e.reshape(to_f32(e, x[0], t), std::array{c.outer, c.count, c.inner});
        ggml_tensor* deviation = e.unary(Unary::sqrt, e.scale(vector(2), 1, static_cast<float>(a.epsilon)));
        y = e.binary(Binary::sub, y, vector(1));
        if (in.has(3))
            y = e.binary(Binary::mul, y, e.binary(Binary::div, vector(3), deviation));
        else
            y = e.binary(Binary::div, y, deviation);
        if (in.has(4)) y = e.binary(Binary::add, y, vector(4));
        return {from_f32(e, y, in[0])};
    }

    static bool planes_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return in[0].dtype == DType::f32 && channels(in[0].sizes(), a).inner > 1;
    }
    static headrace::kernels::ShiftAndScale given_statistics(const TensorArgs& args, std::int64_t channel,
                                                             const Attrs& a) {
        return shift_and_scale(args, 3, channel, args.in[1].as<float>()[channel],
                               args.in[2].as<float>()[channel] + a.epsilon);
    }
    static void run_planes(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        const Channels c = channels(args.in[0].shape, a);
        const auto part = args.share.of(c.outer * c.count);
        for (std::int64_t plane = part.begin; plane < part.end; ++plane) {
            headrace::kernels::shift_and_scale_f32(
                args.in[0].as<float>() + plane * c.inner, static_cast<std::size_t>(c.inner),
                given_statistics(args, plane % c.count, a), args.out[0].as<float>() + plane * c.inner);
        }
    }

    static bool rows_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return in[0].dtype == DType::f32 && channels(in[0].sizes(), a).inner == 1;
    }
    static void run_rows(const TensorArgs& args, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        const Channels c = channels(args.in[0].shape, a);
        const auto part = args.share.of(c.outer);
        std::vector<headrace::kernels::ShiftAndScale> columns;
        for (std::int64_t i = 0; i < c.count; ++i) columns.push_back(given_statistics(args, i, a));
        headrace::kernels::shift_and_scale_rows_f32(args.in[0].as<float>() + part.begin * c.count, c.count,
                                                    static_cast<std::size_t>(part.end - part.begin),
                                                    columns.size(), columns.data(),
                                                    args.out[0].as<float>() + part.begin * c.count);
    }

    // One pass over memory; ggml's ops would take four.
    static constexpr std::array kernels{
        KernelDef{.name = "batch_norm_f32", .applies = &planes_apply, .run = &run_planes},
        KernelDef{.name = "batch_norm_rows_f32", .applies = &rows_apply, .run = &run_rows},
        KernelDef{.name = "batch_norm_one_pass",
                  .applies = [](const Operands&, std::span<const bool>, const void*) { return true; },
                  .run = [](const TensorArgs& args,
                            const void* a) { reference(args, detail::attrs_ref<Attrs>(a)); }}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 3);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        const auto add = [&](DType t, const Shape& shape, std::int64_t axis, bool affine) {
            const TensorType vector{
                t, {shape[axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis]}};
            list.push_back({{{.type = {t, shape}},
                             {.type = vector, .constant = true},
                             {.type = vector, .low = 0.1, .high = 3, .constant = true},
                             {.type = vector, .constant = true, .absent = !affine},
                             {.type = vector, .constant = true, .absent = !affine}},
                            {{"axis", axis}, {"epsilon", 1e-3}},
                            sample_tolerance(t)});
        };
        for (const bool affine : {false, true}) {
            add(DType::f32, {2, 3, 4, 5}, 1, affine);
            add(DType::f32, {2, 4, 5, 3}, 3, affine);
            add(DType::f32, {3, 1, 2, 101}, -1, affine);
        }
        add(DType::f32, {6}, 0, true);
        add(DType::f32, {2, 3, 2, 2, 2, 2}, -5, true);
        for (DType t : {DType::f16, DType::bf16, DType::f64}) add(t, {2, 3, 4}, 1, true);
        return list;
    }
};

struct InstanceNormalization {
    static constexpr std::string_view name = "instance_normalization",
                                      summary = "normalises each channel of each image over its pixels";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kFloats, .min_rank = 4, .max_rank = 4},
        OperandRule{.name = "scale", .dtypes = kFloats, .same_dtype_as = 0, .optional = true},
        OperandRule{.name = "bias", .dtypes = kFloats, .same_dtype_as = 0, .optional = true}};
    static constexpr LayoutRule layout = LayoutRule::channels;

    struct Attrs {
        double epsilon = 1e-5;
        ImageLayout layout = ImageLayout::nchw;
        static void fields(auto&& f) {
            f("epsilon", &Attrs::epsilon, "added to the variance");
            f("layout", &Attrs::layout, "where the channels are");
        }
    };

    static int channel_axis(const Attrs& a) { return a.layout == ImageLayout::nchw ? 1 : 3; }

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        for (int i : {1, 2})
            if (in.has(i))
                HR_TRY(check_vector(in, operands[i].name, in[i].shape, in[0].shape[channel_axis(a)]));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        const Sizes shape = args.in[0].shape;
        const std::int64_t channels = shape[channel_axis(a)];
        const std::int64_t pixels = a.layout == ImageLayout::nchw ? shape[2] * shape[3] : shape[1] * shape[2];
        const std::int64_t step = a.layout == ImageLayout::nchw ? 1 : channels;
        const auto part = args.share.of(pixels == 0 ? 0 : shape[0] * channels);
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            for (std::int64_t plane = part.begin; plane < part.end; ++plane) {
                const std::int64_t channel = plane % channels;
                const std::int64_t start =
                    step == 1 ? plane * pixels : plane / channels * pixels * channels + channel;
                const std::pair scale_bias{read_or<T>(args, 1, channel, 1), read_or<T>(args, 2, channel, 0)};
                normalize(
                    args.in[0].as<T>() + start, args.out[0].as<T>() + start, pixels, a.epsilon,
                    [&](std::int64_t i) { return i * step; }, [&](std::int64_t) { return scale_bias; });
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        return normalizes_through_f32(in[0].dtype, a.epsilon);
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const DType t = in[0].dtype;
        const Channels c(in[0].sizes(), static_cast<std::size_t>(channel_axis(a)));
        const std::int64_t batch = in[0].shape[0].size();
        constexpr std::array swap{0, 2, 1};
        ggml_tensor* y = to_f32(e, x[0], t);
        std::int64_t pixels = c.inner;
        if (a.layout == ImageLayout::nhwc) {
            pixels = c.outer / batch;
            y = e.contiguous(e.permute(e.reshape(y, std::array{batch, pixels, c.count}), swap));
        }
        y = e.norm(e.reshape(y, std::array{batch, c.count, pixels}), static_cast<float>(a.epsilon));
        if (in.has(1)) y = e.binary(Binary::mul, y, c.vector(e, x[1], t));
        if (in.has(2)) y = e.binary(Binary::add, y, c.vector(e, x[2], t));
        if (a.layout == ImageLayout::nhwc) y = e.contiguous(e.permute(y, swap));
        return {from_f32(e, y, in[0])};
    }

    static bool planes_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return in[0].dtype == DType::f32 && a.layout == ImageLayout::nchw;
    }
    static void run_planes(const TensorArgs& args, const void* attrs) {
        const double epsilon = detail::attrs_ref<Attrs>(attrs).epsilon;
        const Sizes shape = args.in[0].shape;
        const std::int64_t channels = shape[1], pixels = shape[2] * shape[3];
        const auto count = static_cast<std::size_t>(pixels);
        const auto part = args.share.of(shape[0] * channels);
        for (std::int64_t plane = part.begin; plane < part.end; ++plane) {
            const float* x = args.in[0].as<float>() + plane * pixels;
            const double n = static_cast<double>(pixels);
            const double mean =
                headrace::kernels::reduce_run_f32(headrace::kernels::Reduction::sum, x, count) / n;
            const double variance = headrace::kernels::squared_deviations_f32(x, count, mean) / n;
            headrace::kernels::shift_and_scale_f32(
                x, count, shift_and_scale(args, 1, plane % channels, mean, variance + epsilon),
                args.out[0].as<float>() + plane * pixels);
        }
    }

    static bool pixels_apply(const Operands& in, std::span<const bool>, const void* attrs) {
        const auto& a = detail::attrs_ref<Attrs>(attrs);
        return in[0].dtype == DType::f32 && a.layout == ImageLayout::nhwc;
    }
    /// Each thread takes some vectors of channels of an image, since a mean needs all pixels.
    static void run_pixels(const TensorArgs& args, const void* attrs) {
        constexpr std::int64_t kVector = 16;
        const double epsilon = detail::attrs_ref<Attrs>(attrs).epsilon;
        const Sizes shape = args.in[0].shape;
        const std::int64_t pixels = shape[1] * shape[2], channels = shape[3];
        const std::int64_t vectors = (channels + kVector - 1) / kVector;
        const auto part = args.share.of(pixels == 0 ? 0 : shape[0] * vectors);
        for (std::int64_t at = part.begin; at < part.end;) {
            const std::int64_t image = at / vectors, vector = at % vectors;
            const std::int64_t count = std::min(part.end - at, vectors - vector), first = vector * kVector;
            run_channels(args, image * pixels * channels, first, std::min(channels, first + count * kVector),
                         epsilon);
            at += count;
        }
    }
    static void run_channels(const TensorArgs& args, std::int64_t image, std::int64_t first,
                             std::int64_t last, double epsilon) {
        namespace k = headrace::kernels;
        const Sizes shape = args.in[0].shape;
        const auto pixels = static_cast<std::size_t>(shape[1] * shape[2]),
                   count = static_cast<std::size_t>(last - first);
        const double n = static_cast<double>(pixels);
        const float* x = args.in[0].as<float>() + image + first;
        std::vector<double> means(count), squares(count);
        k::reduce_rows_f32(k::Reduction::sum, x, shape[3], pixels, count, means.data());
        for (double& mean : means) mean /= n;
        k::squared_deviations_of_rows_f32(x, shape[3], pixels, count, means.data(), squares.data());
        std::vector<k::ShiftAndScale> columns(count);
        for (std::size_t i = 0; i < count; ++i)
            columns[i] = shift_and_scale(args, 1, first + static_cast<std::int64_t>(i), means[i],
                                         squares[i] / n + epsilon);
        k::shift_and_scale_rows_f32(x, shape[3], pixels, count, columns.data(),
                                    args.out[0].as<float>() + image + first);
    }

    static constexpr std::array kernels{
        KernelDef{.name = "instance_norm_f32", .applies = &planes_apply, .run = &run_planes},
        KernelDef{.name = "instance_norm_pixels_f32", .applies = &pixels_apply, .run = &run_pixels},
        KernelDef{.name = "instance_norm_one_pass",
                  .applies = [](const Operands&, std::span<const bool>, const void*) { return true; },
                  .run = [](const TensorArgs& args,
                            const void* a) { reference(args, detail::attrs_ref<Attrs>(a)); }}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 8);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (const bool nhwc : {false, true})
            for (const bool affine : {false, true})
                for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
                    const SampleOperand vector{.type = {t, {3}}, .constant = true, .absent = !affine};
                    list.push_back(
                        {{{.type = {t, nhwc ? Shape{2, 4, 5, 3} : Shape{2, 3, 4, 5}}}, vector, vector},
                         {{"layout", std::string(nhwc ? "nhwc" : "nchw")}, {"epsilon", 1e-3}},
                         sample_tolerance(t)});
                }
        const SampleOperand wide{.type = {DType::f32, {37}}, .constant = true};
        list.push_back(
            {{{.type = {DType::f32, {2, 3, 7, 37}}}, wide, wide}, {{"layout", std::string("nhwc")}}, 2e-5});
        list.push_back({{{.type = {DType::f32, {2, 1, 6, 1}}}}, {{"layout", std::string("nhwc")}}, 2e-5});
        return list;
    }
};

}  // namespace

std::span<const OpDef> channel_normalization_ops() {
    return OpList<BatchNormalization, InstanceNormalization>::defs();
}

}  // namespace headrace::ops
