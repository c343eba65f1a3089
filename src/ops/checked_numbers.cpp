/// Numbers that a caller gives and an operator does not take: steps and divisors of 0, lengths beyond the
/// end.
#include <array>
#include <optional>

#include "ir/kernel_error.h"
#include "ops/checked.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct CheckedNumbers {
    static constexpr std::string_view name = "checked_numbers",
                                      summary =
                                          "the numbers themselves; a run in which one is less than the least "
                                          "or more than the most, or 0 where that is not taken, fails";
    static constexpr DTypeSet kWhole = kSigned | kUnsigned;
    static constexpr std::array operands{OperandRule{.name = "numbers", .dtypes = kWhole}};
    static constexpr LayoutRule layout = LayoutRule::any;

    struct Attrs {
        std::string what;
        std::int64_t least = 0;
        Shape most;
        bool refuses_zero = false;
        static void fields(auto&& f) {
            f("what", &Attrs::what, "what messages call one of them", kRequired);
            f("least", &Attrs::least, "what each is at least");
            f("most", &Attrs::most, "what each is at most; empty: anything");
            f("refuses_zero", &Attrs::refuses_zero, "whether none may be 0");
        }
    };

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (a.most.size() > 1)
            return invalid("most {} has {} values; one or none", str(a.most), a.most.size());
        return same_type(in[0]);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        copy_checked<kWhole>(args, [&](std::int64_t, std::int64_t number) {
            if (a.refuses_zero && number == 0)
                throw KernelError(fmt::format("{} is 0; any other number is right", a.what));
            if (number < a.least)
                throw KernelError(fmt::format("{} is {}; at least {} is right", a.what, number, a.least));
            if (!a.most.empty() && number > a.most[0].size())
                throw KernelError(
                    fmt::format("{} is {}; at most {} is right", a.what, number, a.most[0].size()));
        });
    }

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 2);
    }
    static std::vector<Sample> samples() {
        const auto sample = [](DType t, Shape shape, Shape most, bool refuses_zero = false) {
            const double low = refuses_zero ? 1 : 0;
            return Sample{
                {{.type = {t, std::move(shape)}, .low = low, .high = 3}},
                {{"what", std::string("a step")}, {"most", std::move(most)}, {"refuses_zero", refuses_zero}}};
        };
        return {sample(DType::i32, {2, 3}, {5}), sample(DType::i64, {4}, {}), sample(DType::u32, {}, {9}),
                sample(DType::u8, {5}, {}, true)};
    }
};

}  // namespace

std::span<const OpDef> checked_numbers_ops() { return OpList<CheckedNumbers>::defs(); }

}  // namespace headrace::ops
