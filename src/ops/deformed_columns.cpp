/// The elements under the places of deformable convolutions (Dai et al. 2017).
#include <array>
#include <cmath>

#include "ops/corners.h"
#include "ops/image.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

/// As deformable convolutions have it: elements outside the plane are 0.
Corners open_corners(double y, double x, std::int64_t height, std::int64_t width) {
    Corners c;
    if (!(y > -1 && y < static_cast<double>(height) && x > -1 && x < static_cast<double>(width))) return c;
    const double top = std::floor(y), left = std::floor(x);
    for (std::size_t i = 0; i < 4; ++i) {
        const double row = top + static_cast<double>(i / 2), column = left + static_cast<double>(i % 2);
        if (row < 0 || column < 0 || row >= static_cast<double>(height) ||
            column >= static_cast<double>(width))
            continue;
        c.at[i] = static_cast<std::int64_t>(row) * width + static_cast<std::int64_t>(column);
        c.weight[i] = (1 - std::abs(y - row)) * (1 - std::abs(x - column));
    }
    return c;
}

struct DeformedAttrs {
    std::vector<std::int64_t> kernel, strides{1, 1}, padding{0, 0, 0, 0}, dilations{1, 1};
    std::int64_t offset_groups = 1;
    static void fields(auto&& f) {
        f("kernel", &DeformedAttrs::kernel, "height and width of the filter", kRequired);
        f("strides", &DeformedAttrs::strides, "vertical and horizontal step of the filter");
        f("padding", &DeformedAttrs::padding, "zeros above, below, left and right of the image");
        f("dilations", &DeformedAttrs::dilations, "vertical and horizontal distance of its elements");
        f("offset_groups", &DeformedAttrs::offset_groups,
          "how many groups of channels have offsets of their own");
    }
};

struct DeformedColumns {
    static constexpr std::string_view
        name = "deformed_columns",
        summary =
            "for each place of a filter the elements under it, each moved by an "
            "offset: [n, c kh kw, places]";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kReal, .min_rank = 4, .max_rank = 4},
        OperandRule{.name = "offset", .dtypes = kReal, .same_dtype_as = 0, .min_rank = 4, .max_rank = 4},
        OperandRule{.name = "mask",
                    .dtypes = kReal,
                    .same_dtype_as = 0,
                    .optional = true,
                    .min_rank = 4,
                    .max_rank = 4}};
    using Attrs = DeformedAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_TRY(check_values("kernel", a.kernel, 2, 1));
        HR_TRY(check_values("strides", a.strides, 2, 1));
        HR_TRY(check_values("padding", a.padding, 4, 0));
        HR_TRY(check_values("dilations", a.dilations, 2, 1));
        const Shape &x = in[0].shape, &offset = in[1].shape;
        const Dim taps = product({a.kernel[0], a.kernel[1]});
        if (a.offset_groups < 1 || !divides(in, a.offset_groups, x[1]))
            return invalid("{} channels do not divide into {} groups", x[1].str(), a.offset_groups);
        const Dim moved = product({taps, a.offset_groups});
        Shape wanted{x[0], product({2, moved})};
        for (std::size_t i : {0, 1}) {
            const Window window{a.kernel[i], a.strides[i], a.dilations[i], a.padding[2 * i],
                                a.padding[2 * i + 1]};
            HR_ASSIGN(
                const Dim extent,
                window_output(i ? "deformed columns' width" : "deformed columns' height", x[2 + i], window));
            wanted.push_back(extent);
        }
        if (!same_shape(in, offset, wanted))
            return invalid("Wrong shape: offset {} must be {}", str(offset), str(wanted));
        wanted[1] = moved;
        if (in.has(2) && !same_shape(in, in[2].shape, wanted))
            return invalid("Wrong shape: mask {} must be {}", str(in[2].shape), str(wanted));
        return Types{{in[0].dtype, {x[0], product({x[1], taps}), product({wanted[2], wanted[3]})}}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_real(args.in[0].dtype, [&]<class T>() { gather<T>(args, a); });
    }

    template <class T>
    static void gather(const TensorArgs& args, const Attrs& a) {
        const Sizes x = args.in[0].shape, offset = args.in[1].shape;
        const std::int64_t taps = a.kernel[0] * a.kernel[1], places = offset[2] * offset[3];
        if (places == 0) return;
        const std::int64_t each = x[1] / a.offset_groups;  // channels of a group
        const auto part = args.share.of(args.out[0].elements() / places);
        for (std::int64_t row = part.begin; row < part.end; ++row) {
            const std::int64_t tap = row % taps, channel = row / taps % x[1], n = row / taps / x[1];
            const T* plane = args.in[0].as<T>() + (n * x[1] + channel) * x[2] * x[3];
            const std::int64_t moved = (n * a.offset_groups + channel / each) * taps + tap;
            const T* down = args.in[1].as<T>() + 2 * moved * places;
            const T* mask = args.has(2) ? args.in[2].as<T>() + moved * places : nullptr;
            T* y = args.out[0].as<T>() + row * places;
            for (std::int64_t i = 0; i < places; ++i) {
                const std::int64_t top =
                    i / offset[3] * a.strides[0] - a.padding[0] + tap / a.kernel[1] * a.dilations[0];
                const std::int64_t left =
                    i % offset[3] * a.strides[1] - a.padding[2] + tap % a.kernel[1] * a.dilations[1];
                const Corners c = open_corners(
                    static_cast<double>(top) + static_cast<double>(down[i]),
                    static_cast<double>(left) + static_cast<double>(down[places + i]), x[2], x[3]);
                y[i] = static_cast<T>(c.sum(plane) * (mask ? static_cast<double>(mask[i]) : 1.0));
            }
        }
    }

    static Cost cost(const Operands&, std::span<const TensorType> out, const Attrs&) {
        const auto bytes = static_cast<double>(out[0].bytes());
        return {5 * bytes, 4 * bytes};
    }
    static std::vector<Sample> samples() {
        return {{{{.type = {DType::f32, {2, 4, 6, 5}}},
                  {.type = {DType::f32, {2, 16, 6, 5}}},
                  {.type = {DType::f32, {2, 8, 6, 5}}}},
                 {{"kernel", std::vector<std::int64_t>{2, 2}},
                  {"padding", std::vector<std::int64_t>{1, 0, 0, 1}},
                  {"offset_groups", 2}}}};
    }
};

}  // namespace

std::span<const OpDef> deformed_columns_ops() { return OpList<DeformedColumns>::defs(); }

}  // namespace headrace::ops
