/// Matrix products as matmul, gemm and fused_matmul share them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/share.h"
#include "ir/one_pass_reader.h"
#include "ir/op_def.h"
#include "kernels/gemm/gemm_f32.h"
#include "ops/arithmetic.h"
#include "ops/strided.h"

namespace headrace::ops {

/// Neighbouring batch dimensions in which a and b behave alike: both are stepped through, or one repeats.
struct BatchGroup {
    std::int64_t size;
    bool a_repeats, b_repeats;
};

/// A batched product C[batch][m][n] = A[batch][m][k] · B[batch][k][n] of strided matrices; strides in
/// elements.
struct Product {
    std::vector<BatchGroup> batch;
    std::vector<std::int64_t> a_batch, b_batch;  ///< stride of each group; 0 repeats
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t a_row = 0, a_inner = 1, b_inner = 0, b_column = 1;

    std::int64_t batches() const;
    /// Where batch number i of A and B starts.
    std::array<std::int64_t, 2> starts(std::int64_t i) const;
};

/// The product of dense row-major matrices a[..., m, k] and b[..., k, n], or b[..., n, k] if transposed.
/// Their batch extents broadcast. A matrix that is the same for the last batches becomes one product with
/// more rows.
Product dense_product(Sizes a, Sizes b, bool b_transposed = false);

/// Extents of operand `i`; the operand's type must be concrete.
inline std::vector<std::int64_t> sizes_of(const Operands& in, int i) { return in[i].sizes(); }

/// Bytes of the operands and outputs, and 2·m·n·k operations for each batch.
Cost product_cost(const Operands& in, std::span<const TensorType> out, const Product& p);

/// Whether and how a product becomes ggml's mul_mat.
Status product_lowerable(const Operands& in, const Product& p);
/// The product in f32, contiguous; not yet in the output's shape.
ggml_tensor* lower_product(Emit& e, ggml_tensor* a, ggml_tensor* b, const Operands& in, const Product& p);

/// The packed kernel's form of a constant matrix B[k][n], or B[n][k] if transposed.
std::size_t packed_matrix_bytes(const Operands& in, bool b_transposed);
void pack_matrix(const ConstView& b, bool b_transposed, std::byte* packed);

/// Packs the next rows of a matrix B[n][k] into panels, some after the others. pack: kernels::pack() or one
/// like it.
template <class T, class Pack>
void pack_transposed_rows(OnePassReader& from, std::size_t rows, std::size_t columns, T* packed,
                          const Pack& pack) {
    const std::size_t step = OnePassReader::rows_at_once(columns * sizeof(T), kernels::kPanelWidth);
    for (std::size_t first = 0; first < rows; first += step) {
        const std::size_t count = std::min(step, rows - first);
        pack(from.next<T>(count * columns), 1, static_cast<std::ptrdiff_t>(columns), columns, count,
             packed + first * columns);
    }
}

/// The same of B[k][n], or of B[n][k] if transposed.
template <class T, class Pack>
void pack_in_parts(const ConstView& b, bool b_transposed, T* packed, const Pack& pack) {
    const auto rows = static_cast<std::size_t>(b.shape[b.shape.size() - 2]),
               columns = static_cast<std::size_t>(b.shape.back());
    OnePassReader from(b);
    if (b_transposed) return pack_transposed_rows(from, rows, columns, packed, pack);
    const std::size_t step = OnePassReader::rows_at_once(columns * sizeof(T), 1);
    for (std::size_t first = 0; first < rows; first += step) {
        const std::size_t count = std::min(step, rows - first);
        const T* part = from.next<T>(count * columns);
        for (std::size_t column = 0; column < columns; column += kernels::kPanelWidth) {
            const std::size_t wide = std::min(kernels::kPanelWidth, columns - column);
            pack(part + column, static_cast<std::ptrdiff_t>(columns), 1, count, wide,
                 packed + column * rows + first * kernels::packed_width(wide));
        }
    }
}
/// The arguments common to its uses: out = in[0] · packed in[1], without epilogue.
kernels::GemmArgs packed_gemm_args(const TensorArgs& args, bool b_transposed);

/// Tiles of C that one accumulation buffer holds.
inline constexpr std::int64_t kProductRows = 4, kProductColumns = 256;

/// Computes this thread's tiles of C in double and hands each finished row segment to
/// store(row, column, count, sums), where rows count through all batches.
template <class T, class Store>
void reference_product(const T* a, const T* b, const Product& p, Share share, Store&& store) {
    const std::int64_t row_tiles = (p.m + kProductRows - 1) / kProductRows;
    const std::int64_t column_tiles = (p.n + kProductColumns - 1) / kProductColumns;
    const auto part = share.of(p.batches() * row_tiles * column_tiles);
    for (std::int64_t tile = part.begin; tile < part.end; ++tile) {
        const std::int64_t batch = tile / (row_tiles * column_tiles);
        const std::int64_t row = tile / column_tiles % row_tiles * kProductRows;
        const std::int64_t column = tile % column_tiles * kProductColumns;
        const std::int64_t rows = std::min(kProductRows, p.m - row),
                           columns = std::min(kProductColumns, p.n - column);
        const auto [a_start, b_start] = p.starts(batch);
        const T* a_tile = a + a_start + row * p.a_row;
        const T* b_tile = b + b_start + column * p.b_column;

        double sums[kProductRows][kProductColumns] = {};
        double line[kProductColumns];
        for (std::int64_t i = 0; i < p.k; ++i) {
            const T* source = b_tile + i * p.b_inner;
            for (std::int64_t c = 0; c < columns; ++c) line[c] = convert<double>(source[c * p.b_column]);
            for (std::int64_t r = 0; r < rows; ++r) {
                const double factor = convert<double>(a_tile[r * p.a_row + i * p.a_inner]);
                for (std::int64_t c = 0; c < columns; ++c) sums[r][c] += factor * line[c];
            }
        }
        for (std::int64_t r = 0; r < rows; ++r) store(batch * p.m + row + r, column, columns, sums[r]);
    }
}

}  // namespace headrace::ops
