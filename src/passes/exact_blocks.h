#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file_pages.h"
#include "base/result.h"
#include "ir/graph.h"

namespace headrace {

/// A constant matrix (whole - zero_point) · scale, with a scale for each block of elements.
struct LinearMatrix {
    const Value* whole = nullptr;
    const Value* scale = nullptr;
    const Value* zero_point = nullptr;  ///< null: zeros
    bool transposed = false;            ///< the product reads the transpose of the matrix
};

/// The codes of one block, before its zero point is taken off.
using BlockCodes = std::array<std::int16_t, kBlockElements>;

/// Rows [row, row_end) of the product's columns, inner elements [k, k_end) of each.
struct MatrixPart {
    std::int64_t row, row_end, k, k_end;
};

/// Reads a matrix as rows of the product's columns: row n, inner element k.
class BlockReader {
public:
    /// inner_first: the file's lines are elements k of all rows; else they are rows.
    BlockReader(const LinearMatrix& m, bool inner_first);

    std::int64_t rows() const { return rows_; }
    std::int64_t inner() const { return inner_; }
    /// Whether so many inner elements, which divide a block of 32, have one scale.
    bool has_one_scale_per(std::int64_t elements) const {
        return inner_ % kBlockElements == 0 && (inner_first_ ? row_block_ : column_block_) % elements == 0;
    }
    /// The codes of a block from element k on of each of `rows` rows, read in the order in which they lie.
    void codes(std::int64_t row, std::int64_t rows, std::int64_t k, BlockCodes* to) const;
    /// Parts that lie side by side, of some millions of codes.
    std::vector<MatrixPart> parts() const;
    std::span<const std::byte> bytes_of(const MatrixPart& part) const;
    std::int64_t scale_index(std::int64_t row, std::int64_t k) const {
        if (inner_first_) std::swap(row, k);
        return row / row_block_ * scale_columns_ + k / column_block_;
    }
    float scale(std::int64_t index) const;
    bool has_zero_points() const { return m_.zero_point != nullptr; }
    int zero_point(std::int64_t index) const;
    /// The scale that a row has in all its blocks.
    std::optional<float> scale_of_row(std::int64_t row) const;
    /// What blocks are made of.
    std::vector<const Constant*> sources() const;
    std::string str() const;

private:
    /// Reads codes of whole bytes, 8 x 8 at a time. Returns of how many rows: the last ones are left where
    /// they are fewer than 8.
    std::int64_t codes_of_columns(std::int64_t row, std::int64_t rows, std::int64_t k, BlockCodes* to) const;
    template <class To>
    void codes_from(std::int64_t first, std::int64_t count, const To& to) const;

    LinearMatrix m_;
    bool inner_first_;
    std::int64_t columns_, rows_, inner_, row_block_, column_block_, scale_columns_;
};

/// How a matrix becomes blocks.
struct BlockForm {
    BlockFormat format;
    int lowest;       ///< code
    bool has_scales;  ///< else they are left to what follows the product
};

/// What making blocks takes beside a matrix.
struct BlockWork {
    const FilePages& pages;
    int threads;
};

/// Null: the format cannot say it. What was read is given back part by part.
Result<std::shared_ptr<const Constant>> exact_blocks(const BlockReader& matrix, const BlockForm& form,
                                                     const BlockWork& work);

}  // namespace headrace
