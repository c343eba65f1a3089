/// Permutation of dimensions.
#include <algorithm>
#include <array>
#include <numeric>

#include "emit/emit.h"
#include "kernels/tensor/permute.h"
#include "ops/composed.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

struct TransposeAttrs {
    std::optional<std::vector<std::int64_t>> permutation;
    static void fields(auto&& f) {
        f("permutation", &TransposeAttrs::permutation,
          "output dimension i is input dimension permutation[i]; by default the dimensions are reversed");
    }
};

/// The permutation that checked attributes say.
std::vector<int> permutation_of(const TransposeAttrs& a, int rank) {
    std::vector<int> permutation(rank);
    if (!a.permutation) {
        std::iota(permutation.rbegin(), permutation.rend(), 0);
        return permutation;
    }
    for (int i = 0; i < rank; ++i) permutation[i] = normalize_axis((*a.permutation)[i], rank).value();
    return permutation;
}

/// The permutation without extents of 1, and with dimensions that stay neighbours merged: what has to be
/// moved.
struct Moved {
    std::vector<std::int64_t> sizes;  ///< of the input
    std::vector<int> permutation;
};

Moved merge(Sizes shape, const std::vector<int>& permutation) {
    std::vector<int> kept;  // input dimensions in output order
    for (int axis : permutation)
        if (shape[axis] != 1) kept.push_back(axis);
    std::vector<int> in_order = kept;
    std::sort(in_order.begin(), in_order.end());
    const auto rank_of = [&](int axis) {
        return std::find(in_order.begin(), in_order.end(), axis) - in_order.begin();
    };

    // group[i]: which merged dimension the i-th kept input dimension belongs to, first as its leader's
    // number.
    std::vector<std::vector<int>> groups;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (i > 0 && rank_of(kept[i]) == rank_of(kept[i - 1]) + 1)
            groups.back().push_back(kept[i]);
        else
            groups.push_back({kept[i]});
    }
    std::vector<int> leaders;
    for (const auto& group : groups) leaders.push_back(group[0]);
    std::sort(leaders.begin(), leaders.end());

    Moved moved;
    moved.sizes.resize(groups.size(), 1);
    for (const auto& group : groups) {
        const auto at = std::find(leaders.begin(), leaders.end(), group[0]) - leaders.begin();
        for (int axis : group) moved.sizes[at] *= shape[axis];
        moved.permutation.push_back(static_cast<int>(at));
    }
    return moved;
}

struct Transpose {
    static constexpr std::string_view name = "transpose", summary = "the dimensions in another order";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny}};
    using Attrs = TransposeAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const int rank = in[0].rank();
        if (a.permutation) {
            if (static_cast<int>(a.permutation->size()) != rank)
                return invalid("permutation {} has {} entries, input {} has rank {}", str(*a.permutation),
                               a.permutation->size(), str(in[0].shape), rank);
            HR_TRY(normalize_axes(*a.permutation, rank));
        }
        TensorType out{in[0].dtype, {}};
        for (int axis : permutation_of(a, rank)) out.shape.push_back(in[0].shape[axis]);
        return Types{out};
    }

    static std::optional<int> same_as(const Operands& in, const Attrs& a) {
        const auto permutation = permutation_of(a, in[0].rank());
        int last = -1;  // moving extents of 1 past equal ones changes nothing
        for (std::size_t i = 0; i < permutation.size(); ++i) {
            const Dim& moved = in[0].shape[permutation[i]];
            if (!(moved == in[0].shape[i])) return std::nullopt;
            if (moved.is(1)) continue;
            if (permutation[i] < last) return std::nullopt;
            last = permutation[i];
        }
        return 0;
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            const auto dense = dense_strides(view.in[0].shape);
            std::vector<std::int64_t> strides;
            for (int axis : permutation_of(a, view.in[0].rank())) strides.push_back(dense[axis]);
            strided_copy(view.in[0].data, 0, view.out[0].shape, strides, view.out[0].data,
                         element_bytes(view.in[0].dtype), view.share);
        });
    }

    static Status lowerable(const Operands& in, const Attrs& a) {
        constexpr DTypeSet kCopied{DType::f32, DType::f16, DType::bf16, DType::i32};
        const Moved moved = merge(in[0].sizes(), permutation_of(a, in[0].rank()));
        if (moved.permutation.size() <= 1) return success();
        if (!kCopied.has(in[0].dtype)) return unsupported("{}", name_of(in[0].dtype));
        return success();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const Moved moved = merge(in[0].sizes(), permutation_of(a, in[0].rank()));
        const TensorType out = infer(in, a).value()[0];
        if (moved.permutation.size() <= 1) return {e.shaped(x[0], out)};
        return {e.shaped(composed::permuted(e, x[0], moved.sizes, moved.permutation), out)};
    }

    static bool permute_applies(const Operands& in, std::span<const bool>, const void* attrs) {
        const Attrs& a = detail::attrs_ref<Attrs>(attrs);
        const std::size_t rank = merge(in[0].sizes(), permutation_of(a, in[0].rank())).sizes.size();
        return rank >= 2 && rank <= headrace::kernels::PermuteArgs::kRank && bits_of(in[0].dtype) >= 8;
    }
    static void run_permute(const TensorArgs& args, const void* attrs) {
        const ConstView& in = args.in[0];
        const Moved moved = merge(in.shape, permutation_of(detail::attrs_ref<Attrs>(attrs), in.rank()));
        const auto strides = dense_strides(moved.sizes);
        headrace::kernels::PermuteArgs p{
            .src = in.data, .dst = args.out[0].data, .element_size = element_bytes(in.dtype)};
        std::ptrdiff_t dense = 1;
        for (int i = static_cast<int>(moved.permutation.size()) - 1; i >= 0; --i) {
            const int axis = moved.permutation[i];
            p.extent[i] = static_cast<std::size_t>(moved.sizes[axis]);
            p.src_stride[i] = strides[axis];
            p.dst_stride[i] = dense;
            dense *= moved.sizes[axis];
        }
        headrace::kernels::permute(p, args.share.ith, args.share.nth);
    }
    static constexpr std::array kernels{
        KernelDef{.name = "permute", .applies = &permute_applies, .run = &run_permute}};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    static std::vector<Sample> samples() {
        using Permutation = std::vector<std::int64_t>;
        const auto sample = [](DType t, Shape shape, Permutation permutation) {
            Sample s{{{.type = {t, std::move(shape)}, .low = 0, .high = 7}}, {}};
            if (!permutation.empty()) s.attrs.emplace_back("permutation", std::move(permutation));
            return s;
        };
        return {sample(DType::f32, {5, 7}, {}),
                sample(DType::f32, {}, {}),
                sample(DType::f32, {2, 3, 4}, {2, 0, 1}),
                sample(DType::f32, {2, 3, 4, 5}, {0, 2, 1, 3}),
                sample(DType::f32, {2, 3, 4, 5}, {3, 1, 2, 0}),
                sample(DType::f32, {2, 1, 3, 2, 4}, {1, 3, 0, 4, 2}),
                sample(DType::f32, {2, 3, 2, 2, 2, 3}, {3, 4, 5, 0, 1, 2}),
                sample(DType::f32, {2, 3, 2, 2, 3}, {4, 2, 0, 3, 1}),
                sample(DType::f16, {3, 4, 5}, {1, 2, 0}),
                sample(DType::i32, {3, 4}, {1, 0}),
                sample(DType::i64, {3, 1, 4}, {2, 1, 0}),
                sample(DType::u8, {1, 6, 1}, {1, 2, 0}),
                sample(DType::f64, {2, 3}, {1, 0}),
                sample(DType::i4, {3, 5}, {1, 0})};
    }
};

}  // namespace

std::span<const OpDef> transpose_ops() { return OpList<Transpose>::defs(); }

}  // namespace headrace::ops
