/// Writing into a copy of a tensor at indices. Every thread owns a range of the output: it copies that, then
/// goes through all updates in order and writes what falls into its range. So where indices repeat, the last
/// update wins.
#include <array>
#include <cstring>

#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

constexpr std::array kScatterOperands{OperandRule{.name = "input", .dtypes = kAny, .min_rank = 1},
                                      OperandRule{.name = "indices", .dtypes = kIndices, .min_rank = 1},
                                      OperandRule{.name = "updates", .dtypes = kAny, .same_dtype_as = 0}};

/// Copies this thread's part of the input; the part, in elements.
Share::Range copy_part(const TensorArgs& args) {
    const std::size_t bytes = element_bytes(args.out[0].dtype);
    const auto part = args.share.of(args.out[0].elements(), 64);
    std::memcpy(args.out[0].data + static_cast<std::size_t>(part.begin) * bytes,
                args.in[0].data + static_cast<std::size_t>(part.begin) * bytes,
                static_cast<std::size_t>(part.end - part.begin) * bytes);
    return part;
}

struct ScatterElements {
    static constexpr std::string_view name = "scatter_elements",
                                      summary = "the input with one element replaced per index along an axis";
    static constexpr std::array operands = kScatterOperands;

    struct Attrs {
        std::int64_t axis = 0;
        static void fields(auto&& f) { f("axis", &Attrs::axis, "dimension in which the indices point"); }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        return infer_element_updates(in, a.axis);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            visit_width(element_bytes(view.in[0].dtype), [&]<class T>() { scatter<T>(view, a); });
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, DType index, Shape indices, std::int64_t axis) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 7},
                           {.type = {index, indices}, .low = index == DType::u32 ? 0. : -4., .high = 4},
                           {.type = {t, indices}, .low = 0, .high = 7}},
                          {{"axis", axis}}};
        };
        return {sample(DType::f32, {1, 5}, DType::i32, {1, 2}, 1),
                sample(DType::f32, {3, 3}, DType::i64, {2, 3}, 0),
                sample(DType::f16, {2, 3, 4}, DType::u32, {2, 2, 4}, 1),
                sample(DType::i64, {5}, DType::i32, {7}, -1),
                sample(DType::i4, {3, 3}, DType::i32, {1, 3}, 0)};
    }

private:
    template <class T>
    static void scatter(const TensorArgs& args, const Attrs& a) {
        const auto part = copy_part(args);
        const int axis = normalize_axis(a.axis, args.in[0].rank()).value();
        const std::int64_t extent = args.in[0].shape[axis];
        auto strides = dense_strides(args.in[0].shape);
        const std::int64_t axis_stride = std::exchange(strides[axis], 0);
        const Indices indices(args.in[1]);
        const T* updates = args.in[2].as<T>();
        T* y = args.out[0].as<T>();
        StridedWalk<1>(args.in[1].shape, {strides})
            .run(Share{}, [&](std::int64_t at, const auto& offsets, std::int64_t count, const auto& steps) {
                for (std::int64_t i = 0; i < count; ++i) {
                    const std::int64_t to =
                        offsets[0] + i * steps[0] + indices.at(at + i, extent) * axis_stride;
                    if (to >= part.begin && to < part.end) y[to] = updates[at + i];
                }
            });
    }
};

struct ScatterNd {
    static constexpr std::string_view name = "scatter_nd",
                                      summary = "the input with slices replaced at index tuples";
    static constexpr std::array operands = kScatterOperands;

    static Result<Types> infer(const Operands& in, const NoAttrs&) {
        HR_ASSIGN(const int depth, tuple_size(in[0], in[1]));
        Shape expected(in[1].shape.begin(), in[1].shape.end() - 1);
        expected.insert(expected.end(), in[0].shape.begin() + depth, in[0].shape.end());
        if (!same_shape(in, in[2].shape, expected))
            return invalid("Shape mismatch: updates are {}, input {} and indices {} need {}",
                           str(in[2].shape), str(in[0].shape), str(in[1].shape), str(expected));
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        move_elements(args, [](const TensorArgs& view) {
            const auto part = copy_part(view);
            const TupleIndices tuples(view.in[0].shape, view.in[1]);
            const auto bytes = static_cast<std::int64_t>(element_bytes(view.in[0].dtype));
            for (std::int64_t i = 0; i < tuples.count; ++i) {
                const std::int64_t first = tuples.slice_at(i) * tuples.slice;
                const std::int64_t begin = std::max(first, part.begin),
                                   end = std::min(first + tuples.slice, part.end);
                if (begin >= end) continue;
                std::memcpy(view.out[0].data + begin * bytes,
                            view.in[2].data + (i * tuples.slice + begin - first) * bytes,
                            static_cast<std::size_t>((end - begin) * bytes));
            }
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const NoAttrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, DType index, Shape indices, Shape updates) {
            return Sample{
                {{.type = {t, std::move(shape)}, .low = 0, .high = 7},
                 {.type = {index, std::move(indices)}, .low = index == DType::u32 ? 0. : -4., .high = 4},
                 {.type = {t, std::move(updates)}, .low = 0, .high = 7}},
                {}};
        };
        return {sample(DType::f32, {8}, DType::i32, {4, 1}, {4}),
                sample(DType::f32, {4, 4, 4}, DType::i64, {2, 1}, {2, 4, 4}),
                sample(DType::f16, {2, 3}, DType::u32, {2}, {}),
                sample(DType::i64, {3, 2, 2}, DType::i32, {5, 2}, {5, 2}),
                sample(DType::u4, {3, 3}, DType::i32, {2, 1}, {2, 3})};
    }
};

}  // namespace

std::span<const OpDef> scatter_ops() { return OpList<ScatterElements, ScatterNd>::defs(); }

}  // namespace headrace::ops
