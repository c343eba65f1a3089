#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/half.h"
#include "headrace/dtype.h"

namespace headrace {

/// A set of dtypes, as a bit mask.
class DTypeSet {
public:
    constexpr DTypeSet() = default;
    constexpr DTypeSet(std::initializer_list<DType> types) {
        for (DType t : types) bits_ |= bit(t);
    }
    constexpr bool has(DType t) const { return bits_ & bit(t); }
    constexpr DTypeSet operator|(DTypeSet other) const {
        other.bits_ |= bits_;
        return other;
    }
    std::string str() const {
        std::string text;
        for (int i = 0; i < kDTypeCount; ++i)
            if (has(static_cast<DType>(i)))
                text.append(text.empty() ? "" : ", ").append(name_of(static_cast<DType>(i)));
        return text;
    }

    static constexpr std::uint32_t bit(DType t) { return 1u << static_cast<int>(t); }
    std::uint32_t bits_ = 0;  ///< public, so that a set can be a template argument
};

inline constexpr DTypeSet kFloats{DType::f32, DType::f16, DType::bf16, DType::f64};
inline constexpr DTypeSet kHalfFloats{DType::f16, DType::bf16};
inline constexpr DTypeSet kSigned{DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr DTypeSet kUnsigned{DType::u8, DType::u32, DType::u64};
inline constexpr DTypeSet kNumeric = kFloats | kSigned | kUnsigned;  ///< everything one can calculate with
inline constexpr DTypeSet kAny = kNumeric | DTypeSet{DType::i4, DType::u4, DType::boolean};
inline constexpr DTypeSet kIndices{DType::i32, DType::u32, DType::i64};
inline constexpr DTypeSet kTruth{DType::u8, DType::boolean};

constexpr bool is_float(DType t) { return kFloats.has(t); }

/// Calls f.template operator()<T>() with the C++ storage type of a byte-sized dtype (not i4, u4).
/// f16 and bf16 come as Half and BFloat16, bool as std::uint8_t.
template <class F>
decltype(auto) visit_dtype(DType t, F&& f) {
    switch (t) {
        case DType::f32: return f.template operator()<float>();
        case DType::f16: return f.template operator()<Half>();
        case DType::bf16: return f.template operator()<BFloat16>();
        case DType::f64: return f.template operator()<double>();
        case DType::i8: return f.template operator()<std::int8_t>();
        case DType::i16: return f.template operator()<std::int16_t>();
        case DType::i32: return f.template operator()<std::int32_t>();
        case DType::u32: return f.template operator()<std::uint32_t>();
        case DType::i64: return f.template operator()<std::int64_t>();
        case DType::u64: return f.template operator()<std::uint64_t>();
        default: return f.template operator()<std::uint8_t>();
    }
}

/// The type a stored element is calculated in: f16 and bf16 in float, all others as they are.
template <class T>
struct Compute {
    using type = T;
};
template <>
struct Compute<Half> {
    using type = float;
};
template <>
struct Compute<BFloat16> {
    using type = float;
};
template <class T>
using compute_t = typename Compute<T>::type;

}  // namespace headrace
