/// Halves of matrices.
#include <algorithm>
#include <array>
#include <cstring>

#include "emit/emit.h"
#include "ops/composed.h"
#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

struct Triangular {
    static constexpr std::string_view name = "triangular",
                                      summary = "the upper or lower triangle of each matrix, zero elsewhere";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kAny, .min_rank = 2}};

    struct Attrs {
        bool upper = true;
        std::int64_t diagonal = 0;
        static void fields(auto&& f) {
            f("upper", &Attrs::upper, "keep columns from row + diagonal on; else those up to it");
            f("diagonal", &Attrs::diagonal, "0: the main one; above it positive, below it negative");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs&) { return same_type(in[0]); }

    static void reference(const TensorArgs& args, const Attrs& a) {
        move_elements(args, [&](const TensorArgs& view) {
            const Sizes shape = view.out[0].shape;
            const std::int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1];
            const std::int64_t bytes = static_cast<std::int64_t>(element_bytes(view.out[0].dtype));
            const std::int64_t diagonal = std::clamp(a.diagonal, -height - 1, width + 1);
            const auto part = view.share.of(width == 0 ? 0 : view.out[0].elements() / width);
            for (std::int64_t row = part.begin; row < part.end; ++row) {
                const std::int64_t first = row % height + diagonal;
                const std::int64_t begin = a.upper ? std::clamp<std::int64_t>(first, 0, width) : 0;
                const std::int64_t end = a.upper ? width : std::clamp<std::int64_t>(first + 1, 0, width);
                std::byte* to = view.out[0].data + row * width * bytes;
                std::memset(to, 0, static_cast<std::size_t>(begin * bytes));
                std::memcpy(to + begin * bytes, view.in[0].data + (row * width + begin) * bytes,
                            static_cast<std::size_t>((end - begin) * bytes));
                std::memset(to + end * bytes, 0, static_cast<std::size_t>((width - end) * bytes));
            }
        });
    }

    static Status lowerable(const Operands& in, const Attrs&) {
        const auto shape = in[0].sizes();
        if (in[0].dtype != DType::f32 && in[0].dtype != DType::f16)
            return unsupported("{}", name_of(in[0].dtype));
        if (shape[shape.size() - 2] + shape.back() > INT32_MAX / 2)
            return unsupported("matrices of {}", str(in[0].shape));
        return success();
    }

    /// ggml has triangles of square matrices: the diagonal is moved to theirs.
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        const auto shape = in[0].sizes();
        const std::int64_t height = shape[shape.size() - 2], width = shape.back();
        const std::array extents{in[0].elements() / (height * width), height, width};
        ggml_tensor* matrices = e.reshape(to_f32(e, x[0], in[0].dtype), extents);
        const std::int64_t diagonal = std::clamp(a.diagonal, -height, width);
        const bool is_beside = diagonal == -height || diagonal == width;
        ggml_tensor* y = nullptr;
        if (is_beside)
            y = a.upper == (diagonal == width) ? e.fill(matrices, 0) : matrices;
        else if (diagonal > 0)
            y = right_of(e, matrices, diagonal, a.upper);
        else
            y = columns(e, triangle(e, margin(e, matrices, -diagonal), a.upper), -diagonal, width);
        return {from_f32(e, y, in[0])};
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

    /// ggml makes the matrices square first.
    static constexpr std::array kernels{
        KernelDef{.name = "copy_rows",
                  .applies = [](const Operands&, std::span<const bool>, const void*) { return true; },
                  .run = [](const TensorArgs& args,
                            const void* attrs) { reference(args, detail::attrs_ref<Attrs>(attrs)); }}};

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, bool upper, std::int64_t diagonal) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 0, .high = 7}},
                          {{"upper", upper}, {"diagonal", diagonal}}};
        };
        return {sample(DType::f32, {3, 4}, true, 0), sample(DType::f32, {2, 4, 3}, false, 1),
                sample(DType::f16, {2, 2, 3, 3}, true, -1), sample(DType::i32, {3, 3}, false, -5),
                sample(DType::u4, {3, 3}, true, 1)};
    }

private:
    using Sizes = std::span<const std::int64_t>;

    static ggml_tensor* columns(Emit& e, ggml_tensor* x, std::int64_t first, std::int64_t count) {
        const std::array start{std::int64_t{0}, std::int64_t{0}, first},
            size{Emit::extent(x, 2), Emit::extent(x, 1), count};
        return e.contiguous(e.slice(x, start, size));
    }
    /// Zeros to the left.
    static ggml_tensor* margin(Emit& e, ggml_tensor* x, std::int64_t count) {
        return composed::pad(e, x, std::array<std::int64_t, 3>{0, 0, count}, std::array<std::int64_t, 3>{},
                             0);
    }
    static ggml_tensor* triangle(Emit& e, ggml_tensor* x, bool upper) {
        const std::int64_t height = Emit::extent(x, 1), width = Emit::extent(x, 0),
                           side = std::max(height, width);
        const std::array<std::int64_t, 3> none{}, after{0, side - height, side - width},
            size{Emit::extent(x, 2), height, width};
        return e.contiguous(e.slice(e.triangle(composed::pad(e, x, none, after, 0), upper), none, size));
    }
    /// The columns before the diagonal's first are all kept, or none of them is.
    static ggml_tensor* right_of(Emit& e, ggml_tensor* x, std::int64_t diagonal, bool upper) {
        ggml_tensor* rest = triangle(e, columns(e, x, diagonal, Emit::extent(x, 0) - diagonal), upper);
        return upper ? margin(e, rest, diagonal) : e.concat(columns(e, x, 0, diagonal), rest, 2, 3);
    }
};

}  // namespace

std::span<const OpDef> triangular_ops() { return OpList<Triangular>::defs(); }

}  // namespace headrace::ops
