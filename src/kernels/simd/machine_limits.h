// What this machine's cores reach at most, to compare kernels with.
#pragma once

#include <cstddef>

namespace headrace::kernels {

// Independent f32 multiply-adds in registers, `steps` times 12 vectors of them; returns the floating-point
// operations done. `state` holds 16 floats of the calling thread; its first two should be about 1 and small.
double fma_burst(long steps, float* state);

// Reads `bytes` bytes, a multiple of 64, and returns something that depends on all of them.
unsigned long long read_burst(const void* memory, size_t bytes);

struct MachineLimits {
    double gflops = 0;         // of f32 multiply-adds
    double read_gb_per_s = 0;  // from memory, a gibibyte in turn
};

// Measures for about a second with that many threads of its own, and takes a gibibyte of memory for it.
MachineLimits measure_limits(int threads);

}  // namespace headrace::kernels
