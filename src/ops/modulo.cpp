/// Remainders of divisions, and the angle of a point.
#include <cmath>

#include "ops/binary.h"
#include "ops/composed.h"
#include "ops/repetition.h"
#include "ops/through_f32.h"

namespace headrace::ops {
namespace {

/// The remainder of integers: x modulo 0 is 0, as is the remainder of a division by -1, which may overflow.
template <std::integral T>
T integer_fmod(T a, T b) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
        if (b == -1) return 0;
    return static_cast<T>(a % b);
}

// Neither fmod nor remainder has a lowering: products of large quotients would round.
struct Fmod : BinaryOp<Fmod> {
    static constexpr std::string_view name = "fmod",
                                      summary =
                                          "remainder of a / b with the sign of a; integers modulo 0 are 0";
    static constexpr double kOperations = 20, kLow = 1;  // no sample divides by nearly zero
    template <class T>
    static T apply(T a, T b) {
        if constexpr (std::integral<T>)
            return integer_fmod(a, b);
        else
            return std::fmod(a, b);
    }
};

struct Remainder : BinaryOp<Remainder> {
    static constexpr std::string_view name = "remainder",
                                      summary =
                                          "remainder of a / b with the sign of b; integers modulo 0 are 0";
    static constexpr double kOperations = 20, kLow = 1;
    template <class T>
    static T apply(T a, T b) {
        const T rest = Fmod::apply(a, b);
        return rest != T(0) && (rest < T(0)) != (b < T(0)) ? static_cast<T>(rest + b) : rest;
    }
};

struct Atan2 : BinaryOp<Atan2, kFloats> {
    static constexpr std::string_view name = "atan2",
                                      summary = "angle of the point with y = a and x = b, in radians";
    static constexpr double kOperations = 20;
    template <class T>
    static T apply(T a, T b) {
        return std::atan2(a, b);
    }
    static Status lowerable(const Operands& in, const NoAttrs&) { return works_through_f32(in[0].dtype); }
    static std::vector<ggml_tensor*> lower(Emit& e, std::span<ggml_tensor* const> x, const Operands& in,
                                           const NoAttrs& none) {
        const TensorType out = infer(in, none).value()[0];
        const auto whole = [&](int i) {
            return e.flatten(repeat_to(e, to_f32(e, x[i], in[i].dtype), in[i].sizes(), out.sizes()));
        };
        return {from_f32(e, composed::atan2(e, whole(0), whole(1)), out)};
    }
    static constexpr std::array kernels{OnePass<Atan2>::kKernel};
};

}  // namespace

std::span<const OpDef> modulo_ops() { return OpList<Fmod, Remainder, Atan2>::defs(); }

}  // namespace headrace::ops
