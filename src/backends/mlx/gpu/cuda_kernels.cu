// Compiled where nvcc is; not run yet, for want of a GPU.
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

#include "backends/mlx/gpu/cuda_kernels.h"
#include "backends/mlx/gpu/write_unit.h"

namespace headrace::mlx::gpu {
namespace {

__device__ std::int64_t own_unit() {
    return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

template <class T>
__global__ void write_elements(T* memory, const T* values, const std::int64_t* numbers, WriteJob job,
                               std::int64_t units) {
    if (const std::int64_t i = own_unit(); i < units) write_element(memory, values, numbers, job, i);
}

__global__ void write_groups(std::uint8_t* memory, const float* values, const std::int64_t* numbers,
                             WriteJob job, std::int64_t units) {
    if (const std::int64_t i = own_unit(); i < units) write_group(memory, values, numbers, job, i);
}

template <class T>
const void* of_elements() {
    return reinterpret_cast<const void*>(&write_elements<T>);
}

const void* symbol_for(int element_bytes) {
    switch (element_bytes) {
        case 0: return reinterpret_cast<const void*>(&write_groups);
        case 1: return of_elements<std::uint8_t>();
        case 2: return of_elements<std::uint16_t>();
        case 4: return of_elements<std::uint32_t>();
        default: return of_elements<std::uint64_t>();
    }
}

}  // namespace

CUfunction write_kernel(int element_bytes) {
    cudaFunction_t function = nullptr;
    const cudaError_t status = cudaGetFuncBySymbol(&function, symbol_for(element_bytes));
    if (status != cudaSuccess)
        throw std::runtime_error(std::string("the kernel of a write in place: ") + cudaGetErrorString(status));
    return function;
}

}  // namespace headrace::mlx::gpu
