#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "headrace/dtype.h"

namespace headrace::wasi_nn {

/// A tensor as a guest passes it. As a text only its bytes count: callers send all kinds of types and
/// dimensions with one.
struct GuestTensor {
    const void* dimensions = nullptr;  ///< numbers of 32 bits, at any address
    std::uint32_t rank = 0;
    std::int64_t type_number = 0;  ///< the interface's
    std::optional<DType> type;     ///< none: the interface has no such number
    const std::uint8_t* data = nullptr;
    std::optional<std::uint32_t> size;  ///< bytes; none: the interface passes no length

    std::uint32_t extent(std::uint32_t i) const {
        std::uint32_t number;
        std::memcpy(&number, static_cast<const char*>(dimensions) + std::size_t{4} * i, sizeof number);
        return number;
    }
    /// Without a length it has as many bytes as the dimensions say, and ends at a NUL byte within them; at
    /// the first one where they are missing, empty or 1.
    std::string_view text() const {
        const char* bytes = reinterpret_cast<const char*>(data);
        if (size) return {bytes, *size};
        std::uint64_t count = rank ? 1 : 0;
        for (std::uint32_t i = 0; i < rank && count <= UINT32_MAX; ++i) count *= extent(i);
        if (count <= 1 || count > UINT32_MAX) return {bytes, std::strlen(bytes)};
        return {bytes, strnlen(bytes, count)};
    }
};

inline GuestTensor text_tensor(std::string_view text) {
    return {.data = reinterpret_cast<const std::uint8_t*>(text.data()),
            .size = static_cast<std::uint32_t>(text.size())};
}

}  // namespace headrace::wasi_nn
