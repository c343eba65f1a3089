/// Numbers that become extents of shapes, and extents that become numbers.
#include <algorithm>
#include <array>

#include "ir/kernel_error.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct ReadExtents {
    static constexpr std::string_view name = "read_extents",
                                      summary =
                                          "the input itself; its elements are the extents that others name";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = {DType::i64}, .max_rank = 1}};

    struct Attrs {
        Shape counts;
        static void fields(auto&& f) {
            f("counts", &Attrs::counts, "the symbols of the elements, in order", kRequired);
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        const Dim elements = in[0].rank() == 0 ? Dim(1) : in[0].shape[0];
        const auto wanted = static_cast<std::int64_t>(a.counts.size());
        if (!same_extent(in, elements, wanted))
            return invalid("counts has {} entries for the {} elements of {}", wanted, elements.str(),
                           in[0].str());
        return same_type(in[0]);
    }

    static std::vector<std::int64_t> count(std::span<const ConstView> in, const Attrs& a) {
        const auto* x = in[0].as<std::int64_t>();
        std::vector<std::int64_t> extents;
        for (std::size_t i = 0; i < a.counts.size(); ++i) {
            if (x[i] < a.counts[i].min_size() || x[i] > a.counts[i].max_size())
                throw KernelError(
                    fmt::format("element {} is {}, which cannot be the extent {} of at least {}", i, x[i],
                                a.counts[i].str(), a.counts[i].min_size()));
            if (a.counts[i].is_symbolic()) extents.push_back(x[i]);
        }
        return extents;
    }

    static void reference(const TensorArgs& args, const Attrs&) {
        if (!args.share.first()) return;
        std::copy_n(args.in[0].as<std::int64_t>(), args.in[0].elements(), args.out[0].as<std::int64_t>());
    }

    static std::vector<Sample> samples() {
        return {{{{.type = {DType::i64, {3}}, .low = 1, .high = 9}}, {{"counts", Shape{4, 5, 6}}}},
                {{{.type = {DType::i64, {}}, .low = 1, .high = 9}}, {{"counts", Shape{4}}}}};
    }
};

}  // namespace

std::span<const OpDef> read_extents_ops() { return OpList<ReadExtents>::defs(); }

}  // namespace headrace::ops
