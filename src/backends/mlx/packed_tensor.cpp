#include "backends/mlx/packed_tensor.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/mlx/buffer.h"
#include "backends/mlx/tensors.h"

namespace headrace::mlx {

PackedTensor::PackedTensor(const ggml_tensor* root)
    : format_(*quant_format(root->type)),
      memory_(root->data),
      values_(ggml_nelements(root)),
      block_bytes_(ggml_type_size(root->type)) {}

void PackedTensor::write(const void* data, std::size_t offset, std::size_t size) {
    const auto* in = static_cast<const std::uint8_t*>(data);
    std::uint8_t patched[256];  // no block is longer
    while (size > 0) {
        const auto block = static_cast<std::int64_t>(offset / block_bytes_);
        const std::size_t within = offset % block_bytes_;
        std::size_t taken;
        if (within == 0 && size >= block_bytes_) {
            const std::size_t blocks = size / block_bytes_;
            pack_blocks(format_, in, block, static_cast<std::int64_t>(blocks), memory_, values_);
            taken = blocks * block_bytes_;
        } else {
            taken = std::min(size, block_bytes_ - within);
            unpack_blocks(format_, memory_, values_, block, 1, patched);
            std::memcpy(patched + within, in, taken);
            pack_blocks(format_, patched, block, 1, memory_, values_);
        }
        in += taken;
        offset += taken;
        size -= taken;
    }
}

void PackedTensor::read(void* data, std::size_t offset, std::size_t size) const {
    auto* out = static_cast<std::uint8_t*>(data);
    std::uint8_t whole[256];
    while (size > 0) {
        const auto block = static_cast<std::int64_t>(offset / block_bytes_);
        const std::size_t within = offset % block_bytes_;
        std::size_t taken;
        if (within == 0 && size >= block_bytes_) {
            const std::size_t blocks = size / block_bytes_;
            unpack_blocks(format_, memory_, values_, block, static_cast<std::int64_t>(blocks), out);
            taken = blocks * block_bytes_;
        } else {
            taken = std::min(size, block_bytes_ - within);
            unpack_blocks(format_, memory_, values_, block, 1, whole);
            std::memcpy(out, whole + within, taken);
        }
        out += taken;
        offset += taken;
        size -= taken;
    }
}

void PackedTensor::dequantise(std::size_t offset, std::int64_t count, float* out) const {
    dequantise_blocks(format_, memory_, values_, static_cast<std::int64_t>(offset / block_bytes_),
                      count / format_.block, out);
}

RowReader::RowReader(const ggml_tensor* t)
    : root_(root_of(t)), columns_(t->ne[0]), is_packed_(mlx::is_packed(t)) {}

void RowReader::read(const char* row, float* out) const {
    if (is_packed_)
        PackedTensor(root_).dequantise(row - static_cast<const char*>(root_->data), columns_, out);
    else if (root_->type == GGML_TYPE_F32)
        std::memcpy(out, row, static_cast<std::size_t>(columns_) * 4);
    else
        ggml_get_type_traits(root_->type)->to_float(row, out, columns_);
}

bool is_packed(const ggml_tensor* t) { return quant_format(t->type) && buffer_of(t); }

}  // namespace headrace::mlx
