#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/half.h"
#include "kernels/matrix.h"

namespace headrace::kernels::testing {

// A packed matrix of half floats, from [k][n] or [n][k], and the values [n][k] that they stand for.
struct PackedHalfFloats {
    std::vector<float> packed;  // floats, so that pages can guard them
    std::vector<float> values;

    PackedHalfFloats(size_t n, size_t k, bool is_bf16, bool transposed, size_t packed_bytes, auto&& pack)
        : packed(packed_bytes / sizeof(float)), values(random_floats(n * k, 2)) {
        std::vector<std::uint16_t> bits(n * k);
        for (size_t j = 0; j < n; ++j)
            for (size_t l = 0; l < k; ++l) {
                float& value = values[j * k + l];
                std::uint16_t& bit = bits[transposed ? j * k + l : l * n + j];
                bit = is_bf16 ? float_to_bfloat(value) : float_to_half(value);
                value = is_bf16 ? bfloat_to_float(bit) : half_to_float(bit);
            }
        const auto rows = static_cast<ptrdiff_t>(n), inner = static_cast<ptrdiff_t>(k);
        pack(bits.data(), transposed ? 1 : rows, transposed ? inner : 1, k, n,
             reinterpret_cast<std::uint16_t*>(packed.data()));
    }
};

}  // namespace headrace::kernels::testing
