/// Halves of matrices.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/infer.h"
#include "ops/nibbles.h"
#include "ops/op.h"

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

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 0);
    }

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
};

}  // namespace

std::span<const OpDef> triangular_ops() { return OpList<Triangular>::defs(); }

}  // namespace headrace::ops
