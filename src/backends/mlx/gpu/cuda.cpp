// Compiled where MLX is for CUDA; not run yet, for want of a GPU.
#include <cuda_runtime.h>
#include <mlx/backend/cuda/device.h>
#include <mlx/backend/cuda/utils.h>

#include "backends/mlx/gpu/cuda_kernels.h"
#include "backends/mlx/gpu/gpu.h"

namespace headrace::mlx::gpu {

bool has_write_kernels() { return true; }

void launch_write(const mx::Stream& stream, const PlannedWrite& write, array& memory,
                  const std::vector<array>& inputs) {
    constexpr unsigned kThreads = 256;
    auto& encoder = mx::cu::get_command_encoder(stream);
    encoder.device().make_current();
    // Inputs that no kernel reads are waited for all the same.
    for (const array& input : inputs) encoder.set_input_array(input);
    encoder.set_output_array(memory);
    void* to = mx::gpu_ptr<void>(memory);
    void* values = mx::gpu_ptr<void>(inputs[0]);
    void* numbers = write.job.numbers[0] > 0 ? mx::gpu_ptr<void>(inputs[1]) : nullptr;
    WriteJob job = write.job;
    std::int64_t units = write.units;
    const auto blocks = static_cast<unsigned>((units + kThreads - 1) / kThreads);
    encoder.add_kernel_node(write_kernel(write.element_bytes), dim3(blocks), dim3(kThreads), to, values,
                            numbers, job, units);
}

std::optional<MemorySize> memory() {
    MemorySize size{};
    if (cudaMemGetInfo(&size.free, &size.total) != cudaSuccess) return std::nullopt;
    return size;
}

}  // namespace headrace::mlx::gpu
