// Compiled on macOS; not run yet, for want of a Mac.
#include <mlx/backend/metal/device.h>

#include <algorithm>
#include <string>

#include "backends/mlx/gpu/gpu.h"
#include "backends/mlx/gpu/write_kernels_text.h"  // kWriteKernels: write_unit.h and write_kernels.metal as text
#include "backends/mlx/gpu/write_unit.h"

namespace headrace::mlx::gpu {
namespace {

constexpr std::int64_t kThreads = 256;

/// The binding of what a write only has to wait for: no kernel reads it.
constexpr int kWaitedFor = 4;

}  // namespace

bool has_write_kernels() { return true; }

void launch_write(const mx::Stream& stream, const PlannedWrite& write, array& memory,
                  const std::vector<array>& inputs) {
    auto& device = mx::metal::device(stream.device);
    MTL::Library* library = device.get_library("headrace_writes", [] { return std::string(kWriteKernels); });
    auto* kernel = device.get_kernel("write_" + std::to_string(write.element_bytes), library);
    auto& encoder = mx::metal::get_command_encoder(stream);
    encoder.set_compute_pipeline_state(kernel);
    const std::size_t read = write.job.numbers[0] > 0 ? 2 : 1;
    encoder.set_output_array(memory, 0);
    encoder.set_input_array(inputs[0], 1);
    encoder.set_input_array(inputs[read - 1], 2);  // the values again where there are no numbers: not read
    encoder.set_bytes(write.job, 3);
    for (std::size_t i = read; i < inputs.size(); ++i) encoder.set_input_array(inputs[i], kWaitedFor);
    const std::int64_t group = std::min(write.units, kThreads);
    encoder.dispatch_threads(MTL::Size(write.units, 1, 1), MTL::Size(group, 1, 1));
}

std::optional<MemorySize> memory() {
    MTL::Device* const device = mx::metal::device(mx::Device::gpu).mtl_device();
    const std::size_t total = device->recommendedMaxWorkingSetSize();
    return MemorySize{total - std::min<std::size_t>(total, device->currentAllocatedSize()), total};
}

}  // namespace headrace::mlx::gpu
