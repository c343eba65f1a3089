/// Positions of elements, whose number the elements decide.
#include <algorithm>

#include "ops/infer.h"
#include "ops/op.h"
#include "ops/strided.h"

namespace headrace::ops {
namespace {

struct NonZero {
    static constexpr std::string_view name = "non_zero",
                                      summary = "indices of the elements that are not 0, one column each";
    static constexpr std::array operands{
        OperandRule{.name = "input", .dtypes = kNumeric | DTypeSet{DType::boolean}, .min_rank = 1}};

    struct Attrs {
        Shape counts;
        static void fields(auto&& f) {
            f("counts", &Attrs::counts, "the symbol of the number of such elements, in a list", kRequired);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.counts.size() != 1) return invalid("counts has {} entries; it takes one", a.counts.size());
        return Types{{DType::i64, {in[0].rank(), a.counts[0]}}};
    }

    static std::vector<std::int64_t> count(std::span<const ConstView> in, const Attrs&) {
        std::int64_t total = 0;
        for_each(in[0], [&](std::int64_t) { ++total; });
        return {total};
    }

    static void reference(const TensorArgs& args, const Attrs&) {
        if (!args.share.first()) return;
        const std::int64_t columns = args.out[0].shape[1];
        const auto strides = dense_strides(args.in[0].shape);
        auto* out = reinterpret_cast<std::int64_t*>(args.out[0].data);
        std::int64_t column = 0;
        for_each(args.in[0], [&](std::int64_t at) {
            if (column == columns) return;
            for (std::size_t d = 0; d < strides.size(); ++d)
                out[static_cast<std::int64_t>(d) * columns + column] = at / strides[d] % args.in[0].shape[d];
            ++column;
        });
        // Where inputs changed after they were counted, the last columns repeat the first element.
        for (std::size_t d = 0; d < strides.size(); ++d)
            std::fill(out + static_cast<std::int64_t>(d) * columns + column,
                      out + static_cast<std::int64_t>(d + 1) * columns, 0);
    }

    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, std::int64_t count) {
            return Sample{{{.type = {t, std::move(shape)}, .low = 1, .high = 2}}, {{"counts", Shape{count}}}};
        };
        return {sample(DType::f32, {2, 3}, 6), sample(DType::i64, {4}, 4), sample(DType::u8, {2, 1, 2}, 4)};
    }

private:
    template <class F>
    static void for_each(const ConstView& x, F&& f) {
        visit_dtype(x.dtype, [&]<class T>() {
            const T* at = x.as<T>();
            for (std::int64_t i = 0, n = x.elements(); i < n; ++i)
                if (static_cast<compute_t<T>>(at[i]) != 0) f(i);
        });
    }
};

}  // namespace

std::span<const OpDef> non_zero_ops() { return OpList<NonZero>::defs(); }

}  // namespace headrace::ops
