#include "backends/mlx/memory/packed_tensor.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/mlx/arrays/tensors.h"
#include "backends/mlx/memory/buffer.h"

namespace headrace::mlx {
namespace {

constexpr std::size_t kLongestBlock = 256;

/// Whole blocks of a range of bytes, or a part of one.
struct Piece {
    std::size_t at, bytes;  // in the range
    std::int64_t block, blocks;
    std::size_t within;  // the first block
    bool is_partial;
};

/// At most three: a part, whole blocks, a part.
std::vector<Piece> pieces(std::size_t offset, std::size_t size, std::size_t block_bytes) {
    std::vector<Piece> all;
    for (std::size_t at = 0; at < size; at += all.back().bytes) {
        const std::size_t within = (offset + at) % block_bytes, left = size - at;
        const auto block = static_cast<std::int64_t>((offset + at) / block_bytes);
        if (within == 0 && left >= block_bytes) {
            const std::size_t blocks = left / block_bytes;
            all.push_back({at, blocks * block_bytes, block, static_cast<std::int64_t>(blocks), 0, false});
        } else {
            all.push_back({at, std::min(left, block_bytes - within), block, 1, within, true});
        }
    }
    return all;
}

}  // namespace

PackedTensor::PackedTensor(const ggml_tensor* root)
    : format_(*quant_format(root->type)),
      memory_(root->data),
      values_(ggml_nelements(root)),
      block_bytes_(ggml_type_size(root->type)) {}

void PackedTensor::write(const void* data, std::size_t offset, std::size_t size) {
    const auto* in = static_cast<const std::uint8_t*>(data);
    for (const Piece& p : pieces(offset, size, block_bytes_)) {
        const std::uint8_t* from = in + p.at;
        std::uint8_t patched[kLongestBlock];
        if (p.is_partial) {
            unpack_blocks(format_, memory_, values_, p.block, 1, patched);
            std::memcpy(patched + p.within, from, p.bytes);
            from = patched;
        }
        pack_blocks(format_, from, p.block, p.blocks, memory_, values_);
    }
}

void PackedTensor::read(void* data, std::size_t offset, std::size_t size) const {
    auto* out = static_cast<std::uint8_t*>(data);
    for (const Piece& p : pieces(offset, size, block_bytes_)) {
        std::uint8_t whole[kLongestBlock];
        unpack_blocks(format_, memory_, values_, p.block, p.blocks, p.is_partial ? whole : out + p.at);
        if (p.is_partial) std::memcpy(out + p.at, whole + p.within, p.bytes);
    }
}

void PackedTensor::dequantize(std::size_t offset, std::int64_t count, float* out) const {
    dequantize_blocks(format_, memory_, values_, static_cast<std::int64_t>(offset / block_bytes_),
                      count / format_.block, out);
}

RowReader::RowReader(const ggml_tensor* t)
    : root_(root_of(t)), columns_(t->ne[0]), is_packed_(mlx::is_packed(t)) {}

void RowReader::read(const char* row, float* out) const {
    if (is_packed_)
        PackedTensor(root_).dequantize(row - static_cast<const char*>(root_->data), columns_, out);
    else if (root_->type == GGML_TYPE_F32)
        std::memcpy(out, row, static_cast<std::size_t>(columns_) * 4);
    else
        ggml_get_type_traits(root_->type)->to_float(row, out, columns_);
}

bool is_packed(const ggml_tensor* t) { return quant_format(t->type) && buffer_of(t); }

}  // namespace headrace::mlx
