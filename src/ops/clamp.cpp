/// Limits to a range.
#include <array>
#include <cmath>

#include "ops/arithmetic.h"
#include "ops/elementwise.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace headrace::ops {
namespace {

struct ClampAttrs {
    std::optional<Number> min_value, max_value;
    static void fields(auto&& f) {
        f("min_value", &ClampAttrs::min_value, "smallest value of the output; absent or NaN: no limit");
        f("max_value", &ClampAttrs::max_value, "largest value of the output; absent or NaN: no limit");
    }
};

bool is_limit(const std::optional<Number>& bound) { return bound && !std::isnan(number_as<double>(*bound)); }

bool exceeds(const Number& a, const Number& b) {
    return std::visit(
        [](auto x, auto y) {
            if constexpr (std::integral<decltype(x)> && std::integral<decltype(y)>)
                return std::cmp_greater(x, y);
            else
                return static_cast<double>(x) > static_cast<double>(y);
        },
        a, b);
}

/// A bound as an element: exact for 64-bit integers, and the nearest one where the type cannot hold it.
template <class C>
C limit(const std::optional<Number>& bound, C otherwise) {
    if (!is_limit(bound)) return otherwise;
    return std::visit(
        [](auto v) {
            if constexpr (std::integral<C>)
                return saturate<C>(v);
            else
                return static_cast<C>(v);
        },
        *bound);
}

struct Clamp {
    static constexpr std::string_view name = "clamp", summary = "x within [min_value, max_value]";
    static constexpr std::array operands{OperandRule{.name = "input", .dtypes = kNumeric}};
    static constexpr LayoutRule layout = LayoutRule::any;
    using Attrs = ClampAttrs;

    static Result<Types> infer(const Operands& in, const Attrs& a) {
        if (is_limit(a.min_value) && is_limit(a.max_value) && exceeds(*a.min_value, *a.max_value)) {
            const auto text = [](const Number& n) {
                return std::visit([](auto v) { return fmt::format("{}", v); }, n);
            };
            return invalid("min_value {} is greater than max_value {}", text(*a.min_value),
                           text(*a.max_value));
        }
        return same_type(in[0]);
    }

    static std::optional<int> same_as(const Operands&, const Attrs& a) {
        return is_limit(a.min_value) || is_limit(a.max_value) ? std::nullopt : std::optional(0);
    }

    static void reference(const TensorArgs& args, const Attrs& a) {
        visit_dtype(args.in[0].dtype, [&]<class T>() {
            using C = compute_t<T>;
            using Limits = std::numeric_limits<C>;
            constexpr bool kFloat = std::floating_point<C>;
            const C low = limit<C>(a.min_value, kFloat ? -Limits::infinity() : Limits::lowest());
            const C high = limit<C>(a.max_value, kFloat ? Limits::infinity() : Limits::max());
            map_elements<T, T>(args, [=](C x) { return x < low ? low : x > high ? high : x; });
        });
    }

    static Status lowerable(const Operands& in, const Attrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const Attrs& a) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        ggml_tensor* value = to_f32(e, x[0], in[0].dtype);
        ggml_tensor* limited =
            e.clamp(value, limit<float>(a.min_value, -kInfinity), limit<float>(a.max_value, kInfinity));
        return {from_f32(e, keep_nan(e, limited, value), in[0])};
    }
    static constexpr std::array kernels{OnePass<Clamp>::kKernel};

    static Cost cost(const Operands& in, std::span<const TensorType> out, const Attrs&) {
        return elementwise_cost(in, out, 2);
    }

    static std::vector<Sample> samples() {
        std::vector<Sample> list;
        for (DType t : {DType::f32, DType::f16, DType::f64, DType::i8, DType::i32, DType::u8, DType::u64})
            for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 1, 3, 1, 2}, Shape{}})
                for (const NamedAttrs& attrs : {NamedAttrs{}, NamedAttrs{{"min_value", 1.0}},
                                                NamedAttrs{{"max_value", std::int64_t{6}}},
                                                NamedAttrs{{"min_value", 0.0}, {"max_value", 6.0}}})
                    list.push_back(
                        {{{.type = {t, shape}, .low = is_signed(t) ? -9.0 : 0.0, .high = 9}}, attrs});
        return list;
    }

private:
    static bool is_signed(DType t) { return (kFloats | kSigned).has(t); }
};

}  // namespace

std::span<const OpDef> clamp_ops() { return OpList<Clamp>::defs(); }

}  // namespace headrace::ops
