#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

/// Element types. i4 and u4 are packed, two to a byte, the low nibble first; bool is one byte.
enum class DType : std::uint8_t { f32, f16, bf16, f64, i8, u8, i16, i32, u32, i64, u64, i4, u4, boolean };
inline constexpr int kDTypeCount = 14;

namespace detail {
struct DTypeRow {
    std::string_view name;
    std::uint8_t bits;
};
inline constexpr std::array<DTypeRow, kDTypeCount> kDTypeRows{{{"f32", 32},
                                                               {"f16", 16},
                                                               {"bf16", 16},
                                                               {"f64", 64},
                                                               {"i8", 8},
                                                               {"u8", 8},
                                                               {"i16", 16},
                                                               {"i32", 32},
                                                               {"u32", 32},
                                                               {"i64", 64},
                                                               {"u64", 64},
                                                               {"i4", 4},
                                                               {"u4", 4},
                                                               {"bool", 8}}};
}  // namespace detail

constexpr std::string_view name_of(DType t) { return detail::kDTypeRows[static_cast<int>(t)].name; }
constexpr int bits_of(DType t) { return detail::kDTypeRows[static_cast<int>(t)].bits; }
/// Bytes of `count` packed elements.
constexpr std::size_t bytes_of(DType t, std::int64_t count) {
    // Bits may be more than 32 bits count where bytes are not.
    return static_cast<std::size_t>((static_cast<std::uint64_t>(count) * bits_of(t) + 7) / 8);
}
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i)
        if (detail::kDTypeRows[i].name == name) return static_cast<DType>(i);
    return std::nullopt;
}

}  // namespace headrace
