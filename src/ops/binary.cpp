/// Arithmetic of two operands with NumPy broadcasting.
#include <array>
#include <cmath>

#include "emit/emit.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/composed.h"
#include "ops/repetition.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

/// Extents after dropping those of 1 and merging neighbours through which both operands step alike: what
/// ggml, which has four dimensions, sees.
struct Merged {
    std::vector<std::int64_t> a, b, out;
    bool a_repeats = false, b_repeats = false;
};

Merged merge(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    Merged merged;
    const std::size_t rank = std::max(a.size(), b.size());
    const auto extent = [&](const std::vector<std::int64_t>& shape, std::size_t d) {
        return d + shape.size() < rank ? std::int64_t{1} : shape[d + shape.size() - rank];
    };
    int last = -1;
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t in_a = extent(a, d), in_b = extent(b, d), out = in_a == 1 ? in_b : in_a;
        if (out == 1) continue;
        const int kind = in_a == in_b ? 0 : in_a == 1 ? 1 : 2;
        merged.a_repeats |= kind == 1;
        merged.b_repeats |= kind == 2;
        if (kind == last) {
            merged.a.back() *= in_a;
            merged.b.back() *= in_b;
            merged.out.back() *= out;
        } else {
            merged.a.push_back(in_a);
            merged.b.push_back(in_b);
            merged.out.push_back(out);
        }
        last = kind;
    }
    return merged;
}

/// Both operands with all elements of the output, as rows.
std::array<ggml_tensor*, 2> whole_operands(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const TensorType& out) {
    const auto to = out.sizes();
    return {e.flatten(repeat_to(e, x[0], in[0].sizes(), to)),
            e.flatten(repeat_to(e, x[1], in[1].sizes(), to))};
}

/// What ggml computes in several steps, for devices: Self::emit(e, a, b) in f32 of whole operands.
template <class Self>
struct ComposedBinaryOp : BinaryOp<Self> {
    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& none) {
        const TensorType out = BinaryOp<Self>::infer(in, none).value()[0];
        const std::array converted{to_f32(e, x[0], in[0].dtype), to_f32(e, x[1], in[1].dtype)};
        const auto [a, b] = whole_operands(e, converted, in, out);
        return {from_f32(e, Self::emit(e, a, b), out)};
    }
    static constexpr std::array kernels{OnePass<Self>::kKernel};
};

/// ggml computes f16 through f32 and rounds once, as the reference does.
template <class Self, Binary kFunction>
struct NativeBinaryOp : BinaryOp<Self> {
    static Status lowerable(const Operands& in, const NoAttrs&) {
        if (in[0].dtype != DType::f32 && in[0].dtype != DType::f16)
            return unsupported("{}", name_of(in[0].dtype));
        return success();
    }

    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& none) {
        const Merged m = merge(in[0].sizes(), in[1].sizes());
        const TensorType out = BinaryOp<Self>::infer(in, none).value()[0];
        if (m.out.size() > 4) {
            const auto whole = whole_operands(e, x, in, out);
            return {e.shaped(e.binary(kFunction, whole[0], whole[1]), out)};
        }
        return {e.shaped(emit(e, e.reshape(x[0], m.a), e.reshape(x[1], m.b), m), out)};
    }

    /// Where one operand repeats within rows, ggml on the CPU calls its vector function for each element;
    /// large operands it walks row by row.
    static bool zip_applies(const Operands& in, std::span<const bool>, const void*) {
        if (in[0].dtype != DType::f32) return false;
        constexpr std::int64_t kLarge = 16384;
        const Merged m = merge(in[0].sizes(), in[1].sizes());
        return !m.out.empty() && (m.a.back() != m.b.back() || in[0].elements() >= kLarge);
    }
    static void run_zip(const TensorArgs& args, const void*) { BinaryOp<Self>::reference(args, {}); }
    static constexpr std::array kernels{
        KernelDef{.name = "zip_f32", .applies = &zip_applies, .run = &run_zip}};

private:
    /// ggml repeats its second operand only, so a repeating first one is swapped or written out.
    static Emit::Tensor emit(Emit& e, Emit::Tensor a, Emit::Tensor b, const Merged& m) {
        constexpr bool kCommutes = kFunction == Binary::add || kFunction == Binary::mul;
        if (!m.a_repeats) return e.binary(kFunction, a, b);
        if (!m.b_repeats && kCommutes) return e.binary(kFunction, b, a);
        if (!m.b_repeats && kFunction == Binary::sub) return e.binary(Binary::add, e.unary(Unary::neg, b), a);
        return e.binary(kFunction, e.repeat(a, m.out), b);
    }
};

struct Add : NativeBinaryOp<Add, Binary::add> {
    static constexpr std::string_view name = "add", summary = "a + b; integers wrap";
    template <class T>
    static T apply(T a, T b) {
        return wrapping_add(a, b);
    }
};

struct Sub : NativeBinaryOp<Sub, Binary::sub> {
    static constexpr std::string_view name = "sub", summary = "a - b; integers wrap";
    template <class T>
    static T apply(T a, T b) {
        return wrapping_sub(a, b);
    }
};

struct Mul : NativeBinaryOp<Mul, Binary::mul> {
    static constexpr std::string_view name = "mul", summary = "a * b; integers wrap";
    template <class T>
    static T apply(T a, T b) {
        return wrapping_mul(a, b);
    }
};

struct Div : NativeBinaryOp<Div, Binary::div> {
    static constexpr std::string_view name = "div",
                                      summary = "a / b; integers truncate towards zero, and x / 0 is 0";
    static constexpr double kLow = 1;  // no sample divides by nearly zero
    template <class T>
    static T apply(T a, T b) {
        if constexpr (std::integral<T>) {
            if (b == 0) return 0;
            if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapping_sub(T(0), a);
            return static_cast<T>(a / b);
        } else {
            return a / b;
        }
    }
};

struct Max : ComposedBinaryOp<Max> {
    static constexpr std::string_view name = "max", summary = "the larger of a and b; NaN if either is";
    template <class T>
    static T apply(T a, T b) {
        return a > b || a != a ? a : b;
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* a, ggml_tensor* b) { return composed::max(e, a, b); }
};

struct Min : ComposedBinaryOp<Min> {
    static constexpr std::string_view name = "min", summary = "the smaller of a and b; NaN if either is";
    template <class T>
    static T apply(T a, T b) {
        return a < b || a != a ? a : b;
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* a, ggml_tensor* b) { return composed::min(e, a, b); }
};

struct Pow : ComposedBinaryOp<Pow> {
    static constexpr std::string_view name = "pow",
                                      summary =
                                          "a to the power b; integers wrap, and truncate for negative b";
    static constexpr double kOperations = 20, kLow = 0.1, kHigh = 3;
    template <class T>
    static T apply(T a, T b) {
        if constexpr (std::integral<T>)
            return integer(a, b);
        else
            return std::pow(a, b);
    }
    static ggml_tensor* emit(Emit& e, ggml_tensor* a, ggml_tensor* b) { return composed::pow(e, a, b); }

    static void reference(const TensorArgs& args, const NoAttrs&) {
        visit_allowed<kNumeric>(args.in[0].dtype, [&]<class T>() {
            // What exporters write for a square or a cube is a product or two, which vectors compute.
            const double exponent = args.in[1].elements() == 1 ? convert<double>(*args.in[1].as<T>()) : 0;
            if (exponent == 2)
                zip_elements<T, T>(args, [](auto a, auto) { return Mul::apply(a, a); });
            else if (exponent == 3)
                zip_elements<T, T>(args, [](auto a, auto) { return Mul::apply(Mul::apply(a, a), a); });
            else
                zip_elements<T, T>(args, [](auto a, auto b) { return apply(a, b); });
        });
    }

private:
    template <class T>
    static T integer(T base, T exponent) {
        if constexpr (std::is_signed_v<T>) {
            if (exponent < 0) {  // 1 / base^|exponent|, which is whole only for 1 and -1
                if (base == 1) return 1;
                return base == -1 ? (exponent % 2 ? T(-1) : T(1)) : T(0);
            }
        }
        T power = 1;
        for (; exponent; exponent /= 2) {
            if (exponent % 2) power = wrapping_mul(power, base);
            base = wrapping_mul(base, base);
        }
        return power;
    }
};

}  // namespace

std::span<const OpDef> binary_ops() { return OpList<Add, Sub, Mul, Div, Max, Min, Pow>::defs(); }

}  // namespace headrace::ops
