/// Reading a tensor at indices. ggml's get_rows aborts on an index that is out of range, and indices are
/// known only at run time: where devices compute with their type, they are brought into it there. Kernels
/// copy the longest runs there are.
#include <array>
#include <cstring>

#include "emit/emit.h"
#include "ops/composed.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/strided.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

constexpr std::array kGatherOperands{OperandRule{.name = "input", .dtypes = kAny, .min_rank = 1},
                                     OperandRule{.name = "indices", .dtypes = kIndices}};

struct AxisAttrs {
    std::int64_t axis = 0;
    static void fields(auto&& f) { f("axis", &AxisAttrs::axis, "dimension of the input that is indexed"); }
};

Cost gather_cost(const Operands& in, std::span<const TensorType> out) {
    return {0, 2 * static_cast<double>(out[0].bytes()) + static_cast<double>(in[1].bytes())};
}

struct Gather {
    static constexpr std::string_view name = "gather",
                                      summary =
                                          "input slices along an axis, one per index; indices are clamped";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kAny, .min_rank = 1, .blocks = true}, kGatherOperands[1]};
    using Attrs = AxisAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        HR_TRY(check_indexable(in[0], axis, in[1]));
        if (in[0].format != BlockFormat::plain && axis + 1 == in[0].rank())
            return invalid("input is {}; blocks lie along the last dimension, which cannot be indexed",
                           in[0].str());
        const auto at = in[0].shape.begin() + axis;
        TensorType out{in[0].dtype, Shape(in[0].shape.begin(), at)};
        out.shape.insert(out.shape.end(), in[1].shape.begin(), in[1].shape.end());
        out.shape.insert(out.shape.end(), at + 1, in[0].shape.end());
        return Types{out};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            const auto& shape = view.in[0].shape;
            const int axis = normalize_axis(a.axis, view.in[0].rank()).value();
            const std::int64_t extent = shape[axis], count = view.in[1].elements();
            const std::int64_t elements = extent_product(shape, axis + 1, shape.size());
            const auto run = static_cast<std::size_t>(elements) * element_bytes(view.in[0].dtype);
            const BlockFormat format = args.in[0].format;
            const auto source = format == BlockFormat::plain ? run : blocks_bytes(format, elements);
            const Indices indices(view.in[1]);
            const auto part = view.share.of(extent_product(shape, 0, axis) * count);
            if (elements == 1)
                return visit_width(run, [&]<class T>() { pick<T>(view, indices, part, extent); });
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                const std::int64_t row = i / count * extent + indices.at(i % count, extent);
                std::byte* to = view.out[0].data + static_cast<std::size_t>(i) * run;
                const std::byte* from = view.in[0].data + static_cast<std::size_t>(row) * source;
                if (format == BlockFormat::plain)
                    std::memcpy(to, from, run);
                else
                    dequantize(format, from, elements, reinterpret_cast<float*>(to));
            }
        });
    }

    /// Elements of rows of `extent`, which may lie anywhere.
    template <class T>
    static void pick(const TensorArgs& args, const Indices& indices, Share::Range part, std::int64_t extent) {
        const std::int64_t count = args.in[1].elements();
        std::vector<std::int64_t> places;  // worth keeping where they are read for several rows
        for (std::int64_t i = 0; i < count && part.end - part.begin > count; ++i)
            places.push_back(indices.at(i, extent));
        for (std::int64_t i = part.begin; i < part.end;) {
            const std::int64_t row = i / count, end = std::min(part.end, (row + 1) * count);
            const std::byte* from = args.in[0].data + static_cast<std::size_t>(row * extent) * sizeof(T);
            T* to = args.out[0].as<T>() + i;
            const auto copy = [&](std::int64_t place) {
                std::memcpy(to++, from + static_cast<std::size_t>(place) * sizeof(T), sizeof(T));
            };
            if (places.empty())
                for (std::int64_t at = i % count; i < end; ++i) copy(indices.at(at++, extent));
            else
                for (const std::int64_t* at = places.data() + i % count; i < end; ++i) copy(*at++);
        }
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        const bool is_plain = in[0].format == BlockFormat::plain;
        if (is_plain) HR_TRY(works_through_f32(in[0].dtype));
        if (!is_plain && (!is_of_ggml(in[0].format) || in[0].rank() != 2))
            return unsupported("rows of {}", name_of(in[0].format));
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, in[0].rank()).value());
        const std::int64_t extent = in[0].shape[axis].size();
        if (extent > composed::kMostPositions) return unsupported("extent {}", extent);
        return success();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const auto shape = in[0].sizes();
        const auto axis = static_cast<std::size_t>(normalize_axis(a.axis, in[0].rank()).value());
        const std::array extents{extent_product(shape, 0, axis), shape[axis],
                                 extent_product(shape, axis + 1, shape.size())};
        ggml_tensor* at = composed::indices_within(e, x[1], in[1].dtype, extents[1]);
        ggml_tensor* table = in[0].format == BlockFormat::plain ? e.reshape(x[0], extents) : x[0];
        return {from_f32(e, composed::picked_rows(e, table, at), infer(in, a).value()[0])};
    }

    static bool kernel_applies(const Operands&, std::span<const bool>, const void*) { return true; }
    static void run(const TensorArgs& args, const void* attrs) {
        reference(args, detail::attrs_ref<Attrs>(attrs));
    }
    /// ggml's computes with the indices first.
    static constexpr std::array kernels{
        KernelDef{.name = "copy_rows", .applies = &kernel_applies, .run = &run}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return gather_cost(in, out);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, DType index, Shape indices, std::int64_t axis) {
            return Sample{
                {{.type = {t, std::move(shape)}, .low = 0, .high = 7},
                 {.type = {index, std::move(indices)}, .low = index == DType::u32 ? 0. : -6., .high = 6}},
                {{"axis", axis}}};
        };
        const auto table = [&](BlockFormat format, Shape shape, std::int64_t axis) {
            Sample s = sample(DType::f32, std::move(shape), DType::i64, {2, 2}, axis);
            s.operands[0].type.format = format;
            s.operands[0].constant = true;
            return s;
        };
        return {table(BlockFormat::q8_0, {5, 64}, 0),
                table(BlockFormat::q4_1, {2, 5, 32}, 1),
                table(BlockFormat::q6_k, {5, 2, 256}, 0),
                sample(DType::f32, {5, 4}, DType::i32, {3}, 0),
                sample(DType::f32, {2, 5, 3}, DType::i64, {2, 2}, 1),
                sample(DType::f32, {5}, DType::u32, {}, 0),
                sample(DType::f16, {2, 3, 4}, DType::i32, {4}, -1),
                sample(DType::u8, {4, 3}, DType::i32, {1, 5}, 0),
                sample(DType::i64, {2, 2, 2, 2, 3}, DType::i32, {2}, 4),
                sample(DType::f32, {7, 5}, DType::i64, {2, 3}, 1),
                sample(DType::u8, {7, 5}, DType::i32, {9}, 1),
                sample(DType::i4, {3, 3}, DType::i32, {2}, 0)};
    }
};

struct GatherElements {
    static constexpr std::string_view
        name = "gather_elements",
        summary = "one input element per index, which replaces its place along an axis";
    static constexpr std::array operands = kGatherOperands;
    using Attrs = AxisAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        HR_ASSIGN(const int axis, normalize_axis(a.axis, in[0].rank()));
        HR_TRY(check_indexable(in[0], axis, in[1]));
        HR_TRY(check_element_indices(in, axis));
        return Types{{in[0].dtype, in[1].shape}};
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            visit_width(element_bytes(view.in[0].dtype), [&]<class T>() { gather<T>(view, a); });
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return gather_cost(in, out);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, DType index, Shape indices, std::int64_t axis) {
            return Sample{
                {{.type = {t, std::move(shape)}, .low = 0, .high = 7},
                 {.type = {index, std::move(indices)}, .low = index == DType::u32 ? 0. : -4., .high = 4}},
                {{"axis", axis}}};
        };
        return {sample(DType::f32, {2, 2}, DType::i32, {2, 3}, 1),
                sample(DType::f32, {3, 3}, DType::i64, {2, 3}, 0),
                sample(DType::f16, {2, 3, 4}, DType::u32, {2, 5, 4}, 1),
                sample(DType::i64, {5}, DType::i32, {7}, -1),
                sample(DType::u4, {3, 3}, DType::i32, {3, 3}, 0)};
    }

private:
    template <class T>
    static void gather(const TensorArgs& args, const Attrs& a) {
        const int axis = normalize_axis(a.axis, args.in[0].rank()).value();
        const std::int64_t extent = args.in[0].shape[axis];
        auto strides = dense_strides(args.in[0].shape);
        const std::int64_t axis_stride = std::exchange(strides[axis], 0);
        const Indices indices(args.in[1]);
        const T* x = args.in[0].as<T>();
        T* y = args.out[0].as<T>();
        StridedWalk<1>(args.out[0].shape, {strides})
            .run(args.share,
                 [&](std::int64_t at, const auto& offsets, std::int64_t count, const auto& steps) {
                     for (std::int64_t i = 0; i < count; ++i)
                         y[at + i] = x[offsets[0] + i * steps[0] + indices.at(at + i, extent) * axis_stride];
                 });
    }
};

struct GatherNd {
    static constexpr std::string_view name = "gather_nd",
                                      summary = "input slices at index tuples, the indices' last dimension";
    static constexpr std::array operands{kGatherOperands[0],
                                         OperandRule{.name = "indices", .dtypes = kIndices, .min_rank = 1}};

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(const int depth, tuple_size(in[0], in[1]));
        TensorType out{in[0].dtype, Shape(in[1].shape.begin(), in[1].shape.end() - 1)};
        out.shape.insert(out.shape.end(), in[0].shape.begin() + depth, in[0].shape.end());
        return Types{out};
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        move_elements(args, [](const TensorArgs& view) {
            const auto& shape = view.in[0].shape;
            const TupleIndices tuples(shape, view.in[1]);
            const auto run = static_cast<std::size_t>(tuples.slice) * element_bytes(view.in[0].dtype);
            const auto part = view.share.of(tuples.count);
            for (std::int64_t i = part.begin; i < part.end; ++i)
                std::memcpy(view.out[0].data + static_cast<std::size_t>(i) * run,
                            view.in[0].data + static_cast<std::size_t>(tuples.slice_at(i)) * run, run);
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return gather_cost(in, out);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, DType index, Shape indices) {
            return Sample{
                {{.type = {t, std::move(shape)}, .low = 0, .high = 7},
                 {.type = {index, std::move(indices)}, .low = index == DType::u32 ? 0. : -4., .high = 4}},
                {}};
        };
        return {sample(DType::f32, {2, 2}, DType::i32, {2, 2}),
                sample(DType::f32, {2, 3, 4}, DType::i64, {3, 1, 2}),
                sample(DType::f16, {4, 3}, DType::u32, {2, 1}), sample(DType::i64, {5}, DType::i32, {1}),
                sample(DType::u4, {3, 3}, DType::i32, {2, 1})};
    }
};

}  // namespace

std::span<const OpDef> gather_ops() { return OpList<Gather, GatherElements, GatherNd>::defs(); }

}  // namespace headrace::ops
