// What dense products have in common: how they are dealt out to threads, and panels of 16-bit weights.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/gemm/gemm_f32.h"

namespace headrace::kernels {

// Rows [row, row_end) of the panels of columns [panel, panel_end) of one matrix of the batch.
struct Rect {
    size_t batch, row, row_end, panel, panel_end;
};

// Calls fn(Rect) for thread ith's share of nth of `batches` results of m × n. Tiles of rows are
// counted in the order of (batch, panel, tile), weighted by the width of the panel, so that every
// thread gets the same number of sums to within a tile; a share is a run of that order: part of a
// panel, whole panels, part of a panel.
template <class Fn>
void for_each_rect(size_t batches, size_t m, size_t n, size_t rows_per_tile, int ith, int nth, Fn fn) {
    if (batches == 0 || m == 0 || n == 0) return;
    constexpr size_t kColumnsPerUnit = 16, kFullWidth = kPanelWidth / kColumnsPerUnit;
    const size_t tiles = (m + rows_per_tile - 1) / rows_per_tile;
    const size_t panels = (n + kPanelWidth - 1) / kPanelWidth;
    const size_t last_columns = n - (panels - 1) * kPanelWidth;
    const size_t last_width = (last_columns + kColumnsPerUnit - 1) / kColumnsPerUnit;
    const size_t units = tiles * ((panels - 1) * kFullWidth + last_width);  // of one matrix

    struct Point {
        size_t panel, row;
    };
    const auto point = [&](size_t unit) -> Point {
        if (unit == units) return {panels, 0};
        const size_t panel = unit / (tiles * kFullWidth), rest = unit % (tiles * kFullWidth);
        const size_t tile = rest / (panel + 1 == panels ? last_width : kFullWidth);
        return {panel, tile * m / tiles};
    };
    const size_t first = units * batches * ith / nth, last = units * batches * (ith + 1) / nth;
    for (size_t batch = first / units; batch * units < last; ++batch) {
        Point begin = point(std::max(first, batch * units) - batch * units);
        const Point end = point(std::min(last, (batch + 1) * units) - batch * units);
        if (begin.panel == end.panel) {
            if (begin.row < end.row) fn(Rect{batch, begin.row, end.row, begin.panel, begin.panel + 1});
            continue;
        }
        if (begin.row > 0) {
            fn(Rect{batch, begin.row, m, begin.panel, begin.panel + 1});
            ++begin.panel;
        }
        if (begin.panel < end.panel) fn(Rect{batch, 0, m, begin.panel, end.panel});
        if (end.row > 0) fn(Rect{batch, 0, end.row, end.panel, end.panel + 1});
    }
}

// Packs B[k][n] of 16-bit elements, any strides apart, into panels of kPanelWidth columns. A row of a panel
// holds kDepth rows of B, in which a column's elements are neighbours; what B does not fill is 0.
template <size_t kDepth>
void pack_16_bits(const uint16_t* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
                  uint16_t* packed) {
    // Some rows of a panel at a time, so that what is read and what is written stay in the cache.
    constexpr size_t kRows = 64;
    const size_t depth = (k + kDepth - 1) / kDepth * kDepth;
    for (size_t col = 0; col < n; col += kPanelWidth) {
        const size_t cols = std::min(kPanelWidth, n - col), width = packed_width(cols);
        const uint16_t* from = b + static_cast<ptrdiff_t>(col) * stride_n;
        uint16_t* panel = packed + col * depth;
        if (cols < width || k < depth) std::memset(panel, 0, depth * width * sizeof(*panel));
        for (size_t first = 0; first < k; first += kRows)
            for (size_t j = 0; j < cols; ++j)
                for (size_t i = first; i < std::min(k, first + kRows); ++i)
                    panel[(i / kDepth * width + j) * kDepth + i % kDepth] =
                        from[static_cast<ptrdiff_t>(i) * stride_k + static_cast<ptrdiff_t>(j) * stride_n];
    }
}

}  // namespace headrace::kernels
