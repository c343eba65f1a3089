#include "passes/exact_blocks.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/half.h"
#include "base/parallel.h"
#include "ir/constant.h"
#include "ir/shared_forms.h"

namespace headrace {
namespace {

int byte_code(std::byte byte, bool is_signed) {
    const int sign = is_signed ? 128 : 0;
    return (std::to_integer<int>(byte) ^ sign) - sign;
}

int element(const Value& v, std::int64_t i) {
    const auto* bytes = v.constant->bytes.data();
    if (bits_of(v.type.dtype) == 8) return byte_code(bytes[i], v.type.dtype == DType::i8);
    const int nibble = std::to_integer<int>(bytes[i / 2] >> (i % 2 * 4)) & 15;
    return v.type.dtype == DType::i4 && nibble > 7 ? nibble - 16 : nibble;
}

/// Changes places of rows and columns among 8 x 8 bytes, a row a number: by quarters, pairs and single ones.
void transpose_bytes(std::array<std::uint64_t, 8>& rows) {
    const auto exchange = [&](std::size_t apart, int bits, std::uint64_t mask) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i & apart) continue;
            const std::uint64_t differ = ((rows[i] >> bits) ^ rows[i + apart]) & mask;
            rows[i] ^= differ << bits;
            rows[i + apart] ^= differ;
        }
    };
    exchange(4, 32, 0x00000000FFFFFFFF);
    exchange(2, 16, 0x0000FFFF0000FFFF);
    exchange(1, 8, 0x00FF00FF00FF00FF);
}

}  // namespace

BlockReader::BlockReader(const LinearMatrix& m, bool inner_first) : m_(m), inner_first_(inner_first) {
    const Shape& shape = m.whole->type.shape;
    columns_ = shape[1].size();
    rows_ = shape[!inner_first ? 0 : 1].size();
    inner_ = shape[inner_first ? 0 : 1].size();
    const Shape& scales = m.scale->type.shape;
    const int rank = static_cast<int>(scales.size());
    const std::int64_t down = rank > 1 ? scales[0].size() : 1, across = rank > 0 ? scales.back().size() : 1;
    row_block_ = shape[0].size() / down;
    column_block_ = columns_ / across;
    scale_columns_ = across;
}

/// Sets to(i) to the code at first + i.
template <class To>
void BlockReader::codes_from(std::int64_t first, std::int64_t count, const To& to) const {
    const DType type = m_.whole->type.dtype;
    if (bits_of(type) != 8) {
        for (std::int64_t i = 0; i < count; ++i)
            to(i) = static_cast<std::int16_t>(element(*m_.whole, first + i));
        return;
    }
    const std::byte* from = m_.whole->constant->bytes.data() + first;
    for (std::int64_t i = 0; i < count; ++i)
        to(i) = static_cast<std::int16_t>(byte_code(from[i], type == DType::i8));
}

std::int64_t BlockReader::codes_of_columns(std::int64_t row, std::int64_t rows, std::int64_t k,
                                           BlockCodes* to) const {
    constexpr std::int64_t kSide = 8;
    const DType type = m_.whole->type.dtype;
    if (bits_of(type) != 8) return 0;
    std::array<std::uint64_t, kSide> bytes;
    for (std::int64_t r = 0; r + kSide <= rows; r += kSide)
        for (std::int64_t i = 0; i < kBlockElements; i += kSide) {
            const std::byte* from = m_.whole->constant->bytes.data() + (k + i) * columns_ + row + r;
            for (std::size_t line = 0; line < kSide; ++line, from += columns_)
                std::memcpy(&bytes[line], from, kSide);
            transpose_bytes(bytes);
            for (std::size_t line = 0; line < kSide; ++line) {
                const auto codes = std::bit_cast<std::array<std::byte, kSide>>(bytes[line]);
                std::int16_t* of_row = to[r + static_cast<std::int64_t>(line)].data() + i;
                for (std::size_t j = 0; j < kSide; ++j)
                    of_row[j] = static_cast<std::int16_t>(byte_code(codes[j], type == DType::i8));
            }
        }
    return rows / kSide * kSide;
}

void BlockReader::codes(std::int64_t row, std::int64_t rows, std::int64_t k, BlockCodes* to) const {
    if (!inner_first_) {
        for (std::int64_t r = 0; r < rows; ++r)
            codes_from((row + r) * columns_ + k, kBlockElements, [&](auto i) -> auto& { return to[r][i]; });
        return;
    }
    const std::int64_t first =
        std::endian::native == std::endian::little ? codes_of_columns(row, rows, k, to) : 0;
    for (std::int64_t i = 0; i < kBlockElements && first < rows; ++i)
        codes_from((k + i) * columns_ + row + first,
                   rows - first, [&](auto r) -> auto& { return to[first + r][i]; });
}

std::vector<MatrixPart> BlockReader::parts() const {
    constexpr std::int64_t kCodes = std::int64_t{4} << 20;
    const std::int64_t lines = std::max(kCodes / columns_ / kBlockElements, std::int64_t{1}) * kBlockElements;
    std::vector<MatrixPart> parts;
    for (std::int64_t at = 0, all = inner_first_ ? inner_ : rows_; at < all; at += lines) {
        const std::int64_t end = std::min(at + lines, all);
        parts.push_back(inner_first_ ? MatrixPart{0, rows_, at, end} : MatrixPart{at, end, 0, inner_});
    }
    return parts;
}

std::span<const std::byte> BlockReader::bytes_of(const MatrixPart& part) const {
    const auto place = [&](std::int64_t line) {
        return static_cast<std::size_t>(line * columns_ * bits_of(m_.whole->type.dtype) / 8);
    };
    const std::size_t first = place(inner_first_ ? part.k : part.row);
    return m_.whole->constant->bytes.subspan(first, place(inner_first_ ? part.k_end : part.row_end) - first);
}

float BlockReader::scale(std::int64_t index) const {
    float value;  // f32, as the matrix that it makes; memory that a caller lent may lie anywhere
    std::memcpy(&value, m_.scale->constant->bytes.data() + sizeof(value) * static_cast<std::size_t>(index),
                sizeof(value));
    return value;
}

int BlockReader::zero_point(std::int64_t index) const {
    return m_.zero_point ? element(*m_.zero_point, index) : 0;
}

std::optional<float> BlockReader::scale_of_row(std::int64_t row) const {
    const float first = scale(scale_index(row, 0));
    for (std::int64_t k = 0; k < inner_; k += inner_first_ ? row_block_ : column_block_)
        if (scale(scale_index(row, k)) != first) return std::nullopt;
    return first;
}

std::vector<const Constant*> BlockReader::sources() const {
    std::vector<const Constant*> sources{m_.whole->constant.get(), m_.scale->constant.get()};
    if (m_.zero_point) sources.push_back(m_.zero_point->constant.get());
    return sources;
}

std::string BlockReader::str() const {
    return fmt::format("{} / {} {}", m_.whole->type.str(), m_.scale->type.str(), inner_first_);
}

namespace {

bool fits_half(float value) { return std::isfinite(value) && half_to_float(float_to_half(value)) == value; }

/// Stores what the type holds: in f16 exactly, else false.
bool store(float value, bool is_half, std::byte* to) {
    if (is_half ? !fits_half(value) : !std::isfinite(value)) return false;
    is_half ? store_half(value, to) : static_cast<void>(std::memcpy(to, &value, sizeof(value)));
    return true;
}

/// Two blocks of 16 as one, exactly, or false where the format cannot say it.
bool write_pair(const BlockReader& matrix, std::int64_t row, std::int64_t k, const BlockCodes& codes,
                const BlockForm& form, std::byte* to) {
    constexpr int kHalf = kBlockElements / 2;
    int zeros[2];
    for (int half = 0; half < 2; ++half, k += kHalf) {
        const std::int64_t index = matrix.scale_index(row, k);
        if (!store(matrix.scale(index), false, to + half * 4)) return false;
        zeros[half] = matrix.zero_point(index);
    }
    to += 8;
    if (form.format == BlockFormat::q8_16_f32) {
        for (int i = 0; i < kBlockElements; ++i) {
            const int code = codes[i] - zeros[i / kHalf];
            if (code < -128 || code > 127) return false;
            *to++ = static_cast<std::byte>(code);
        }
        return true;
    }
    const auto pair = [&](int low, int high) {
        return static_cast<std::byte>((low - form.lowest) | (high - form.lowest) << 4);
    };
    *to++ = pair(zeros[0], zeros[1]);
    for (int i = 0; i < kHalf; ++i) *to++ = pair(codes[i], codes[i + kHalf]);
    return true;
}

/// One block, exactly, or false where the format cannot say it.
bool write_block(const BlockReader& matrix, std::int64_t row, std::int64_t k, BlockCodes& codes,
                 const BlockForm& form, std::byte* to) {
    const BlockFormat format = form.format;
    if (has_blocks_of_16(format)) return write_pair(matrix, row, k, codes, form, to);
    const bool has_index = form.has_scales || matrix.has_zero_points();
    const std::int64_t index = has_index ? matrix.scale_index(row, k) : 0;
    const float scale = form.has_scales ? matrix.scale(index) : 1;
    const int zero = matrix.zero_point(index);
    const bool is_half = is_of_ggml(format);
    if (!store(scale, is_half, to)) return false;
    to += is_half ? 2 : 4;
    std::int16_t least = 0, most = 0;
    for (std::int16_t& code : codes) {
        code = static_cast<std::int16_t>(code - zero);
        least = std::min(least, code);
        most = std::max(most, code);
    }
    if (format == BlockFormat::q8_0 || format == BlockFormat::q8_0_f32) {
        if (least < -128 || most > 127) return false;
        for (int i = 0; i < kBlockElements; ++i) to[i] = static_cast<std::byte>(codes[i]);
        return true;
    }
    int shift = 8;
    if (format == BlockFormat::q4_0 || format == BlockFormat::q4_0_f32) {
        if (least < -8 || most > 7) return false;
    } else {  // value = scale · stored + minimum, where the stored codes are the given ones from 0 on
        shift = zero - form.lowest;
        if (!store(-scale * static_cast<float>(shift), is_half, to)) return false;
        to += is_half ? 2 : 4;
    }
    for (int i = 0; i < kBlockElements / 2; ++i)
        to[i] = static_cast<std::byte>((codes[i] + shift) | (codes[i + kBlockElements / 2] + shift) << 4);
    return true;
}

/// Writes a part of the matrix's blocks; false where the format cannot say it.
bool write_part(const BlockReader& matrix, const MatrixPart& part, const BlockForm& form, std::byte* blocks) {
    // Rows of the product's columns lie side by side in most files: as many as share a line of the cache.
    constexpr std::int64_t kRowsAtOnce = 64;
    BlockCodes codes[kRowsAtOnce];
    const std::int64_t of_row = matrix.inner() / kBlockElements;
    for (std::int64_t first = part.row; first < part.row_end; first += kRowsAtOnce) {
        const std::int64_t rows = std::min(kRowsAtOnce, part.row_end - first);
        for (std::int64_t k = part.k; k < part.k_end; k += kBlockElements) {
            matrix.codes(first, rows, k, codes);
            for (std::int64_t r = 0; r < rows; ++r) {
                const auto at = static_cast<std::size_t>((first + r) * of_row + k / kBlockElements);
                if (!write_block(matrix, first + r, k, codes[r], form,
                                 blocks + at * block_bytes(form.format)))
                    return false;
            }
        }
    }
    return true;
}

}  // namespace

Result<std::shared_ptr<const Constant>> exact_blocks(const BlockReader& matrix, const BlockForm& form,
                                                     const BlockWork& work) {
    const TensorType type{DType::f32, {matrix.rows(), matrix.inner()}, form.format};
    const auto make = [&]() -> Result<SharedForms::Form> {
        HR_ASSIGN(auto buffer, AlignedBuffer::allocate(type.bytes(), "block weights"));
        const std::vector<MatrixPart> parts = matrix.parts();
        std::atomic<bool> is_exact = true;
        for_each_index(parts.size(), work.threads, [&](std::size_t i) {
            if (!is_exact) return;
            if (!write_part(matrix, parts[i], form, buffer.data())) is_exact = false;
            work.pages.give_back(matrix.bytes_of(parts[i]));
        });
        return is_exact ? shared_bytes(std::move(buffer)) : nullptr;
    };
    const std::string what =
        fmt::format("{} {} {} of {}", name_of(form.format), form.lowest, form.has_scales, matrix.str());
    HR_ASSIGN(auto blocks, SharedForms::all().get(matrix.sources(), what, make));
    return blocks ? own_constant(std::move(blocks), type.bytes()) : nullptr;
}

}  // namespace headrace
