#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/reading_progress.h"
#include "ir/op_def.h"
#include "kernels/gemm/gemm_f32.h"

namespace headrace::ops {

/// Whether a kernel packs by pack_in_stripes().
bool packs_in_stripes(const KernelDef& kernel);

/// Packs a matrix into panels of 64 columns, some of its rows after the others, whose pages are given back
/// before the next ones are read. It may lie at any address. pack: kernels::pack() or one like it.
template <class T, class To, class Pack>
void pack_in_stripes(const ConstView& b, bool b_transposed, To* packed, const Pack& pack) {
    constexpr std::size_t kStripeBytes = std::size_t{4} << 20, kPanel = kernels::kPanelWidth;
    const auto rows = static_cast<std::size_t>(b.shape[b.shape.size() - 2]),
               columns = static_cast<std::size_t>(b.shape.back()), row_bytes = columns * sizeof(T);
    if (rows == 0 || columns == 0) return;
    const std::size_t stripe = std::max<std::size_t>(kStripeBytes / row_bytes / kPanel, 1) * kPanel;
    const auto stride = static_cast<std::ptrdiff_t>(columns);
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(b.data) % alignof(T) == 0;
    std::vector<T> copy(is_aligned ? 0 : std::min(stripe, rows) * columns);
    for (std::size_t row = 0; row < rows; row += stripe) {
        const std::size_t count = std::min(stripe, rows - row);
        const std::byte* from = b.data + row * row_bytes;
        if (!is_aligned) std::memcpy(copy.data(), from, count * row_bytes);
        const T* at = is_aligned ? reinterpret_cast<const T*>(from) : copy.data();
        if (b_transposed) pack(at, 1, stride, columns, count, packed + row * columns);
        for (std::size_t column = 0; !b_transposed && column < columns; column += kPanel) {
            const std::size_t wide = std::min(kPanel, columns - column);
            pack(at + column, stride, 1, count, wide,
                 packed + column * rows + row * kernels::packed_width(wide));
        }
        ReadingProgress::was_read({from, count * row_bytes});
    }
}

}  // namespace headrace::ops
