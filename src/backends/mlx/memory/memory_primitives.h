#pragma once
#include <mlx/primitives.h>

#include <optional>
#include <vector>

#include "backends/mlx/arrays/mlx_api.h"
#include "backends/mlx/memory/write_job.h"
#include "ggml.h"

namespace headrace::mlx {

/// Writes an array into ggml's memory within a graph: MLX's own slice_update would copy a whole KV cache.
///
/// Inputs: the root's memory before the write (flat), the values, row numbers when rows are scattered, and
/// whatever has to be computed before the memory changes. Output: the root's memory after it, the same bytes.
/// On a GPU's stream it is a kernel (gpu/gpu.h), for which `planned` is there; else it runs on the CPU's
/// stream, and where MLX computes on a GPU, MLX itself orders the two.
class InPlaceWrite : public mx::Primitive {
public:
    InPlaceWrite(mx::Stream stream, const ggml_tensor* destination, bool by_rows,
                 std::optional<PlannedWrite> planned = std::nullopt);

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
    void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
    const char* name() const override { return "InPlaceWrite"; }

private:
    ggml_tensor destination_, root_;
    bool by_rows_;
    std::optional<PlannedWrite> planned_;
};

/// Puts contiguous values (of the tensor's type, or f32 where that is quantised) into its memory, at once.
void write_tensor(const ggml_tensor* t, const char* values);

/// The blocks of a quantised tensor as ggml lays them out: bytes, of shape_of() but the rows' size.
class ReadBlocks : public mx::Primitive {
public:
    ReadBlocks(mx::Stream stream, const ggml_tensor* t);

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
    void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
    const char* name() const override { return "ReadBlocks"; }

private:
    ggml_tensor source_, root_;
};

/// f32 values of a quantised tensor, read when the graph runs. Input: its root's memory (flat).
class Dequantize : public mx::Primitive {
public:
    Dequantize(mx::Stream stream, const ggml_tensor* t);

    void eval_cpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
    void eval_gpu(const std::vector<array>& inputs, std::vector<array>& outputs) override;
    const char* name() const override { return "Dequantise"; }

private:
    ggml_tensor source_, root_;
};

}  // namespace headrace::mlx
