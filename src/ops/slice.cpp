/// Parts of a tensor, and a tensor read backwards.
#include <algorithm>
#include <array>
#include <numeric>

#include "emit/emit.h"
#include "ir/expression.h"
#include "ops/composed.h"
#include "ops/extents.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

/// x[starts : starts + sizes] with every step 1, where dimensions that are taken whole are merged into the
/// one before.
struct Region {
    std::vector<std::int64_t> extents, starts, sizes;

    void add(std::int64_t extent, std::int64_t start, std::int64_t size) {
        if (!extents.empty() && size == extent) {
            extents.back() *= extent;
            starts.back() *= extent;
            sizes.back() *= extent;
            return;
        }
        if (!extents.empty() && extents.back() == 1) {
            extents.pop_back();
            starts.pop_back();
            sizes.pop_back();
        }
        extents.push_back(extent);
        starts.push_back(start);
        sizes.push_back(size);
    }
    /// True when the region is one run of the input's elements.
    bool is_run() const {
        return std::all_of(sizes.begin(), sizes.empty() ? sizes.end() : sizes.end() - 1,
                           [](std::int64_t size) { return size == 1; });
    }
    std::int64_t first() const {
        const auto strides = dense_strides(extents);
        return std::inner_product(starts.begin(), starts.end(), strides.begin(), std::int64_t{0});
    }
    std::int64_t elements() const {
        return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    }
};

/// A run of bytes is a view of any tensor; other regions are views that ggml has to copy.
Status region_lowerable(DType dtype, const Region& region) {
    constexpr DTypeSet kCopied{DType::f32, DType::f16, DType::bf16, DType::i32};
    if (region.is_run() ? bits_of(dtype) < 8 : !kCopied.has(dtype)) return unsupported("{}", name_of(dtype));
    if (!region.is_run() && region.extents.size() > 4)
        return unsupported("rank {} after merging dimensions", region.extents.size());
    return success();
}

ggml_tensor* lower_region(Emit& e, ggml_tensor* x, const Region& region, const TensorType& out) {
    if (!region.is_run())
        return e.shaped(e.contiguous(e.slice(e.reshape(x, region.extents), region.starts, region.sizes)),
                        out);
    // Values that ggml cannot type are flat tensors of bytes.
    const std::int64_t unit =
        Emit::has_type(out.dtype) ? 1 : static_cast<std::int64_t>(element_bytes(out.dtype));
    const std::array start{region.first() * unit}, size{region.elements() * unit};
    return e.shaped(e.slice(e.flatten(x), start, size), out);
}

struct Slice {
    static constexpr std::string_view name = "slice",
                                      summary = "every stride-th element of a box in the input";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    static constexpr LayoutRule layout = LayoutRule::axes;

    struct Attrs {
        Shape starts, sizes;
        std::optional<std::vector<std::int64_t>> strides;
        static void fields(auto&& f) {
            f("starts", &Attrs::starts, "first index in each dimension", kRequired);
            f("sizes", &Attrs::sizes, "extent of the box in each dimension, before strides", kRequired);
            f("strides", &Attrs::strides, "step in each dimension; all 1 by default");
        }
        std::int64_t stride(std::size_t i) const { return strides ? (*strides)[i] : 1; }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const std::size_t rank = in[0].shape.size();
        if (a.starts.size() != rank || a.sizes.size() != rank || (a.strides && a.strides->size() != rank))
            return invalid("starts, sizes and strides need one entry per dimension of {}, got {}, {} and {}",
                           str(in[0].shape), a.starts.size(), a.sizes.size(),
                           a.strides ? a.strides->size() : rank);
        TensorType out{in[0].dtype, {}};
        for (std::size_t i = 0; i < rank; ++i) {
            HR_ASSIGN(Dim dim, output_extent(in, in[0].shape[i], i, a));
            out.shape.push_back(std::move(dim));
        }
        return Types{out};
    }

    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        for (std::size_t i = 0; i < a.starts.size(); ++i)
            if (!a.starts[i].is(0) || a.stride(i) != 1 || !(a.sizes[i] == in[0].shape[i]))
                return std::nullopt;
        return 0;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            if (view.out[0].elements() == 0) return;
            auto strides = dense_strides(view.in[0].shape);
            std::int64_t first = 0;
            for (std::size_t i = 0; i < strides.size(); ++i) {
                first += a.starts[i].size() * strides[i];
                strides[i] *= a.stride(i);
            }
            strided_copy(view.in[0].data, first, view.out[0].shape, strides, view.out[0].data,
                         element_bytes(view.in[0].dtype), view.share);
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        if (!is_strided(a)) return region_lowerable(in[0].dtype, region_of(in, a));
        if (in[0].dtype != DType::f32 && in[0].dtype != DType::f16)
            return unsupported("strides of {}", name_of(in[0].dtype));
        for (const Dim& extent : in[0].shape)
            if (extent.size() > composed::kMostPositions) return unsupported("extent {}", extent.size());
        return success();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const TensorType out = infer(in, a).value()[0];
        if (!is_strided(a)) return {lower_region(e, x[0], region_of(in, a), out)};
        std::vector<std::int64_t> shape = in[0].sizes();
        const std::vector<std::int64_t> to = out.sizes();
        ggml_tensor* y = to_f32(e, x[0], in[0].dtype);
        for (std::size_t i = 0; i < shape.size(); shape[i] = to[i], ++i) {
            if (a.starts[i].is(0) && to[i] == shape[i]) continue;
            const std::array extents{extent_product(shape, 0, i), shape[i],
                                     extent_product(shape, i + 1, shape.size())};
            y = composed::picked(e, e.reshape(y, extents),
                                 e.scale(e.positions(to[i]), static_cast<float>(a.stride(i)),
                                         static_cast<float>(a.starts[i].size())));
        }
        return {from_f32(e, y, out)};
    }

    /// ggml looks up what is not beside one another.
    static bool kernel_applies(const Operands&, std::span<const bool>, const void* attrs) {
        return is_strided(detail::attrs_ref<Attrs>(attrs));
    }
    static void run(const TensorArgs& args, const void* attrs) {
        reference(args, detail::attrs_ref<Attrs>(attrs));
    }
    static constexpr std::array kernels{
        KernelDef{.name = "strided_copy", .applies = &kernel_applies, .run = &run}};

    static Cost cost(const Operands&, std::span<const TensorType> out, const Attrs&) {
        return {0, 2 * static_cast<double>(out[0].bytes())};
    }

    static std::vector<Sample> samples() {
        using Integers = std::vector<std::int64_t>;
        const auto sample = [](DType t, Shape shape, Integers starts, Integers sizes, Integers strides = {}) {
            Sample s{{{.type = {t, std::move(shape)}, .low = 0, .high = 7}},
                     {{"starts", std::move(starts)}, {"sizes", std::move(sizes)}}};
            if (!strides.empty()) s.attrs.emplace_back("strides", std::move(strides));
            return s;
        };
        return {sample(DType::f32, {24}, {5}, {12}),
                sample(DType::f32, {4, 6}, {2, 2}, {2, 3}),
                sample(DType::f32, {4, 6}, {1, 0}, {2, 6}),
                sample(DType::f32, {2, 3, 2, 3, 2, 2}, {1, 1, 0, 1, 0, 0}, {1, 2, 2, 2, 2, 2}),
                sample(DType::f32, {2, 3, 4, 2}, {0, 1, 1, 0}, {2, 2, 3, 1}),
                sample(DType::f32, {2, 12}, {0, 2}, {2, 10}, {1, 4}),
                sample(DType::f32, {4, 5}, {1, 1}, {3, 4}, {4, 1}),
                sample(DType::f32, {}, {}, {}),
                sample(DType::f16, {4, 6}, {1, 3}, {3, 2}),
                sample(DType::i32, {3, 4, 2}, {0, 1, 0}, {3, 2, 2}),
                sample(DType::i64, {6, 2}, {3, 0}, {2, 2}),
                sample(DType::u32, {6, 2}, {3, 0}, {2, 2}),
                sample(DType::u8, {3, 5}, {1, 2}, {2, 3}),
                sample(DType::u4, {3, 3}, {1, 1}, {2, 2})};
    }

private:
    /// Strides by which more than one element is taken.
    static bool is_strided(const Attrs& a) {
        for (std::size_t i = 0; i < a.sizes.size(); ++i)
            if (a.stride(i) != 1 && a.sizes[i].size() > a.stride(i)) return true;
        return false;
    }
    static bool has_room(const Operands& in, const Dim& extent, const Dim& start, const Dim& size) {
        if (start.is(0) && size == extent) return true;
        if (!extent.is_symbolic() && !size.is_symbolic() && !start.is_symbolic())
            return size.size() <= extent.size() && start.size() <= extent.size() - size.size();
        return at_least(in, extent, sum(start, size));
    }

    static Result<Dim> output_extent(const Operands& in, const Dim& extent, std::size_t i, const Attrs& a) {
        const std::int64_t stride = a.stride(i);
        const Dim &start = a.starts[i], &size = a.sizes[i];
        if (stride < 1 || !at_least(in, start, 0) || !at_least(in, size, 0))
            return invalid("dimension {}: start {} and size {} must be at least 0, stride {} at least 1", i,
                           start.str(), size.str(), stride);
        if (!has_room(in, extent, start, size))
            return invalid("start {} and size {} are out of bounds for dimension {} of extent {}",
                           start.str(), size.str(), i, extent.str());
        if (stride == 1) return size;
        const auto steps = [&](std::int64_t n) { return n <= 0 ? 0 : (n - 1) / stride + 1; };
        if (!size.is_symbolic()) return Dim(steps(size.size()));
        return Dim::of((Expression(size) + (stride - 1)) / stride,
                       {steps(size.min_size()), steps(size.max_size())});
    }

    static Region region_of(const Operands& in, const Attrs& a) {
        Region region;
        for (std::size_t i = 0; i < a.starts.size(); ++i)
            region.add(in[0].shape[i].size(), a.starts[i].size(),
                       std::min(a.sizes[i].size(), a.stride(i) == 1 ? INT64_MAX : 1));
        return region;
    }
};

struct Split {
    static constexpr std::string_view name = "split",
                                      summary = "consecutive parts of the input along an axis";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny, .min_rank = 1}};
    static constexpr int outputs = -1;
    static constexpr LayoutRule layout = LayoutRule::axes;

    struct Attrs {
        Shape splits;
        std::int64_t axis = 0;
        static void fields(auto&& f) {
            f("splits", &Attrs::splits, "extent of each part; together the axis's extent", kRequired);
            f("axis", &Attrs::axis, "dimension to split");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        const Dim& extent = in[0].shape[axis];
        Types parts;
        for (const Dim& size : a.splits) {
            parts.push_back(in[0]);
            parts.back().shape[axis] = size;
        }
        if (parts.empty() || !all_at_least(in, a.splits, 0) || !fit(a.splits, extent) ||
            !same_extent(in, extent, std::accumulate(a.splits.begin(), a.splits.end(), Dim(0), sum)))
            return invalid("splits {} must add up to {}, the extent of dimension {} of {}", str(a.splits),
                           extent.str(), axis, str(in[0].shape));
        return parts;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            const auto strides = dense_strides(view.in[0].shape);
            const int axis = normalize_axis(a.axis, view.in[0].rank()).value();
            std::int64_t start = 0;
            for (const MutView& part : view.out) {
                strided_copy(view.in[0].data, start * strides[axis], part.shape, strides, part.data,
                             element_bytes(part.dtype), view.share);
                start += part.shape[axis];
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        std::int64_t start = 0;
        for (const std::int64_t size : numbers(a.splits)) {
            HR_TRY(region_lowerable(in[0].dtype, region_of(in, a, start, size)));
            start += size;
        }
        return success();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const Types types = infer(in, a).value();
        std::vector<ggml_tensor*> parts;
        std::int64_t start = 0;
        for (std::size_t i = 0; i < types.size(); ++i) {
            const std::int64_t size = a.splits[i].size();
            parts.push_back(lower_region(e, x[0], region_of(in, a, start, size), types[i]));
            start += size;
        }
        return parts;
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        using Integers = std::vector<std::int64_t>;
        const auto sample = [](DType t, Shape shape, Integers splits, std::int64_t axis) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 7}},
                          {{"splits", std::move(splits)}, {"axis", axis}}};
        };
        return {sample(DType::f32, {8, 3}, {4, 4}, 0),
                sample(DType::f32, {2, 6, 3}, {1, 2, 3}, 1),
                sample(DType::f32, {1, 1, 6, 2, 2}, {3, 3}, 2),
                sample(DType::f32, {2, 3, 2, 2, 4}, {1, 3}, -1),
                sample(DType::f16, {24}, {8, 9, 7}, 0),
                sample(DType::i64, {3, 4}, {2, 1}, 0),
                sample(DType::u32, {1, 4, 2}, {1, 3}, 1),
                sample(DType::i8, {2, 4}, {1, 3}, 1),
                sample(DType::i4, {2, 5}, {2, 3}, 1)};
    }

private:
    /// Numbers that are within an extent that is one, so that their sum is no more than 64 bits hold.
    static bool fit(const Shape& splits, const Dim& extent) {
        std::int64_t rest = extent.max_size();
        for (const Dim& size : splits) {
            if (size.is_symbolic()) continue;
            if (size.size() > rest) return false;
            rest -= size.size();
        }
        return true;
    }

    static Region region_of(const Operands& in, const Attrs& a, std::int64_t start, std::int64_t size) {
        const int axis = normalize_axis(a.axis, in[0].rank()).value();
        Region region;
        for (int i = 0; i < in[0].rank(); ++i) {
            const std::int64_t extent = in[0].shape[i].size();
            region.add(extent, i == axis ? start : 0, i == axis ? size : extent);
        }
        return region;
    }
};

struct Reverse {
    static constexpr std::string_view name = "reverse",
                                      summary = "the elements in opposite order along some axes";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};

    struct Attrs {
        std::optional<std::vector<std::int64_t>> axes;
        static void fields(auto&& f) { f("axes", &Attrs::axes, "dimensions to reverse; all by default"); }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.axes) HR_TRY(normalize_axes(*a.axes, in[0].rank()));
        return same_type(in[0]);
    }

    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        for (int axis : axes_of(a, in[0].rank()))
            if (!in[0].shape[axis].is(1)) return std::nullopt;
        return 0;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            if (view.out[0].elements() == 0) return;
            auto strides = dense_strides(view.in[0].shape);
            std::int64_t first = 0;
            for (int axis : axes_of(a, view.in[0].rank())) {
                first += (view.in[0].shape[axis] - 1) * strides[axis];
                strides[axis] = -strides[axis];
            }
            strided_copy(view.in[0].data, first, view.out[0].shape, strides, view.out[0].data,
                         element_bytes(view.in[0].dtype), view.share);
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        for (int axis : axes_of(a, in[0].rank()))
            if (in[0].shape[axis].size() > composed::kMostPositions)
                return unsupported("extent {}", in[0].shape[axis].size());
        if (in[0].dtype == DType::f32 || in[0].dtype == DType::f16) return success();
        return unsupported("{}", name_of(in[0].dtype));
    }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const auto shape = in[0].sizes();
        ggml_tensor* y = to_f32(e, x[0], in[0].dtype);
        for (int axis : axes_of(a, in[0].rank())) {
            const auto at = static_cast<std::size_t>(axis);
            const std::array extents{extent_product(shape, 0, at), shape[at],
                                     extent_product(shape, at + 1, shape.size())};
            if (shape[at] > 1) y = composed::reversed_rows(e, e.reshape(y, extents));
        }
        return {from_f32(e, y, in[0])};
    }

    /// ggml looks each row up.
    static bool is_moved(const Operands& in, std::span<const bool>, const void* attrs) {
        return !same_as(in, detail::attrs_ref<Attrs>(attrs));
    }
    static void run(const TensorArgs& args, const void* attrs) {
        reference(args, detail::attrs_ref<Attrs>(attrs));
    }
    static constexpr std::array kernels{KernelDef{.name = "strided_copy", .applies = &is_moved, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        using Integers = std::vector<std::int64_t>;
        const SampleOperand x{.type = {DType::f32, {3, 2, 4}}};
        return {{{x}, {}},
                {{x}, {{"axes", Integers{2, 0}}}},
                {{x}, {{"axes", Integers{}}}},
                {{{.type = {DType::i8, {2, 3}}}}, {{"axes", Integers{-1}}}}};
    }

private:
    static std::vector<int> axes_of(const Attrs& a, int rank) {
        if (a.axes) return normalize_axes(*a.axes, rank).value();
        std::vector<int> all(rank);
        std::iota(all.begin(), all.end(), 0);
        return all;
    }
};

}  // namespace

std::span<const OpDef> slice_ops() { return OpList<Slice, Split, Reverse>::defs(); }

}  // namespace headrace::ops
