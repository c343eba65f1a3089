/// The bits of integers.
#include "ops/binary.h"

namespace headrace::ops {
namespace {

constexpr DTypeSet kWhole = kSigned | kUnsigned;

#define HR_BITWISE(Type, text, description, expression)                       \
    struct Type : BinaryOp<Type, kWhole> {                                    \
        static constexpr std::string_view name = text, summary = description; \
        template <class T>                                                    \
        static T apply(T a, T b) {                                            \
            return static_cast<T>(expression);                                \
        }                                                                     \
    };

HR_BITWISE(And, "bitwise_and", "bits that are set in both a and b", a& b)
HR_BITWISE(Or, "bitwise_or", "bits that are set in a or b", a | b)
HR_BITWISE(Xor, "bitwise_xor", "bits that differ between a and b", a ^ b)

#undef HR_BITWISE

/// Whether every bit leaves a T that is shifted by `distance`; so it is for negative distances.
template <class T>
bool leaves(T distance) {
    return static_cast<std::make_unsigned_t<T>>(distance) >= sizeof(T) * 8;
}

struct ShiftLeft : BinaryOp<ShiftLeft, kWhole> {
    static constexpr std::string_view name = "shift_left",
                                      summary =
                                          "a with its bits moved up by b; 0 where b is not in [0, bits)";
    static constexpr double kLow = 0;
    template <class T>
    static T apply(T a, T b) {
        return leaves(b) ? T(0) : static_cast<T>(static_cast<std::uint64_t>(a) << b);
    }
};

struct ShiftRight : BinaryOp<ShiftRight, kWhole> {
    static constexpr std::string_view
        name = "shift_right",
        summary = "a with its bits moved down by b and its sign kept; 0 or -1 where b is not in [0, bits)";
    static constexpr double kLow = 0;
    template <class T>
    static T apply(T a, T b) {
        if (leaves(b)) return static_cast<T>(a < T(0) ? -1 : 0);
        return static_cast<T>(a >> b);
    }
};

}  // namespace

std::span<const OpDef> bitwise_ops() { return OpList<And, Or, Xor, ShiftLeft, ShiftRight>::defs(); }

}  // namespace headrace::ops
