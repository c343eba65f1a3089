#pragma once
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/memory/quant_format.h"

namespace headrace::mlx {

/// Matrices of shape [outer, inner, rows, columns], in whatever strides their memory has; the columns of a
/// row follow one another.
struct StoredMatrices {
    const QuantFormat* format;  ///< null: values of f32 or a 16-bit float; else an affine one
    std::vector<array> parts;   ///< the values, or codes, scales and, where the format has_biases(), biases
};

/// Few rows times matrices as one loop on the CPU, which reads each weight once and as it is; MLX converts
/// 16-bit weights to f32, copies every matrix of a product into its BLAS's order, and has no vectors for
/// codes.
///
/// x: [outer, inner, rows, columns] in f32, where `outer` and `inner` may be multiples of the matrices': as
/// many neighbours share one. The result has `shape`, with matrices' rows as its columns.
array gemv(mx::Stream stream, const array& x, const StoredMatrices& matrices, Shape shape);

/// Each row times the matrix that a number chooses. x: [tokens, used or 1, columns]; numbers: [tokens, used]
/// in i32, of inner matrices; the result [tokens, used, matrices' rows].
array chosen_product(mx::Stream stream, const array& x, const array& numbers, const StoredMatrices& matrices);

}  // namespace headrace::mlx
