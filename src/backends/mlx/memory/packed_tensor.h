#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/mlx/memory/quant_format.h"
#include "ggml.h"

namespace headrace::mlx {

/// A repacked tensor's memory, addressed by the bytes that ggml's own layout would have.
class PackedTensor {
public:
    /// `root` is of a type with a QuantFormat and lies in a Buffer.
    explicit PackedTensor(const ggml_tensor* root);

    void write(const void* data, std::size_t offset, std::size_t size);
    void read(void* data, std::size_t offset, std::size_t size) const;
    /// f32 values from a byte offset that begins a block.
    void dequantize(std::size_t offset, std::int64_t count, float* out) const;

private:
    const QuantFormat& format_;
    void* memory_;
    std::int64_t values_;
    std::size_t block_bytes_;
};

/// Reads rows of a tensor as f32, whatever its type and layout.
class RowReader {
public:
    explicit RowReader(const ggml_tensor* t);
    /// The row whose ggml address is `row`.
    void read(const char* row, float* out) const;

private:
    const ggml_tensor* root_;
    std::int64_t columns_;
    bool is_packed_;
};

/// Whether the tensor's memory is repacked: its type has a format and it lies in a Buffer.
bool is_packed(const ggml_tensor* t);

}  // namespace headrace::mlx
