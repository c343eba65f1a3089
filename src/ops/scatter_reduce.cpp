/// Combining elements with those of a tensor at indices. As in scatter.cpp, every thread owns a range of the
/// output and goes through all updates in order, so that the result does not depend on the threads.
#include <algorithm>
#include <array>

#include "ops/arithmetic.h"
#include "ops/indices.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

enum class Combine : std::uint8_t { sum, product, max, min };
constexpr auto enum_names(Combine) { return std::array<std::string_view, 4>{"sum", "product", "max", "min"}; }

template <class T>
T combined(Combine how, T a, T b) {
    switch (how) {
        case Combine::sum: return wrapping_add(a, b);
        case Combine::product: return wrapping_mul(a, b);
        case Combine::max: return a > b || a != a ? a : b;
        default: return a < b || a != a ? a : b;
    }
}

struct ScatterReduce {
    static constexpr std::string_view
        name = "scatter_reduce",
        summary =
            "the input with elements combined with its own at an index each along an axis; integers wrap";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kNumeric, .min_rank = 1},
        OperandRule{.name = "indices", .dtypes = kIndices, .min_rank = 1},
        OperandRule{.name = "updates", .dtypes = kNumeric, .same_dtype_as = 0}};

    struct Attrs {
        std::int64_t axis = 0;
        Combine reduction = Combine::sum;
        static void fields(auto&& f) {
            f("axis", &Attrs::axis, "dimension in which the indices point");
            f("reduction", &Attrs::reduction, "how elements are combined");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        return infer_element_updates(in, a.axis);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            const auto part = args.share.of(args.out[0].elements(), 64);
            const T* x = args.in[0].as<T>();
            T* y = args.out[0].as<T>();
            std::copy(x + part.begin, x + part.end, y + part.begin);
            const int axis = normalize_axis(a.axis, args.in[0].rank()).value();
            const std::int64_t extent = args.in[0].shape[axis];
            auto strides = dense_strides(args.in[0].shape);
            const std::int64_t axis_stride = std::exchange(strides[axis], 0);
            const Indices indices(args.in[1]);
            const auto load = [](T element) { return static_cast<compute_t<T>>(element); };
            StridedWalk<1>(args.in[1].shape, {strides})
                .run(Share{},
                     [&](std::int64_t at, const auto& offsets, std::int64_t count, const auto& steps) {
                         for (std::int64_t i = 0; i < count; ++i) {
                             const std::int64_t to =
                                 offsets[0] + i * steps[0] + indices.at(at + i, extent) * axis_stride;
                             if (to < part.begin || to >= part.end) continue;
                             y[to] = static_cast<T>(
                                 combined(a.reduction, load(y[to]), load(args.in[2].as<T>()[at + i])));
                         }
                     });
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 2);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, Shape indices, std::int64_t axis, const char* how) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 3},
                           {.type = {DType::i64, indices}, .low = 0, .high = 4},
                           {.type = {t, indices}, .low = 0, .high = 3}},
                          {{"axis", axis}, {"reduction", std::string(how)}},
                          t == DType::f16 ? 2e-3 : 1e-5};
        };
        return {sample(DType::f32, {1, 5}, {1, 9}, 1, "sum"),
                sample(DType::f32, {3, 3}, {2, 3}, 0, "product"),
                sample(DType::f16, {2, 3, 4}, {2, 2, 4}, 1, "max"), sample(DType::i64, {5}, {7}, -1, "min")};
    }
};

}  // namespace

std::span<const OpDef> scatter_reduce_ops() { return OpList<ScatterReduce>::defs(); }

}  // namespace headrace::ops
