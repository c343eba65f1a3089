// One unit of a write in place: an element, or 32 values as codes with a scale and a bias. A GPU does one in
// each thread. This text is C++ for the host (where tests run it) and for CUDA, and Metal's language, which a
// program on a Mac compiles when it first writes: it has only what all three have.
#pragma once
#if defined(__METAL_VERSION__)
#include <metal_stdlib>
using namespace metal;
#define HEADRACE_MEMORY device
#define HEADRACE_PARAMETER constant
#define HEADRACE_UNIT inline
#else
#include <cmath>
#include <cstdint>
#define HEADRACE_MEMORY
#define HEADRACE_PARAMETER const
#if defined(__CUDACC__)
#include <cuda_fp16.h>
#define HEADRACE_UNIT __host__ __device__ inline
#else
#include "ggml.h"
#define HEADRACE_UNIT inline
#endif
#endif

namespace headrace {
namespace mlx {

/// Where each unit of some values goes. Axes are ggml's: the innermost first.
struct WriteJob {
    int64_t extent[4];  ///< of the values, in units
    int64_t step[4];    ///< in the destination, along each axis, in units
    int64_t first;      ///< the destination's first unit, from where its root's memory begins
    int64_t rows;       ///< of the destination
    int64_t
        numbers[3];  ///< extents of the row numbers, which repeat along the outer two; 0: rows as they come
    int64_t scales,
        biases;      ///< of groups: where they begin, in floats from the memory's begin; biases -1: none
    int32_t bits;    ///< of a code
    int32_t offset;  ///< a bias is -offset times the scale; 0: it is a number of its own
};

/// The destination of the values' unit `i`, or -1 where the row number is of a row that does not exist.
HEADRACE_UNIT int64_t destination_unit(HEADRACE_PARAMETER WriteJob& job,
                                       const HEADRACE_MEMORY int64_t* numbers, int64_t i) {
    const int64_t i0 = i % job.extent[0];
    i /= job.extent[0];
    const int64_t i1 = i % job.extent[1];
    i /= job.extent[1];
    const int64_t i2 = i % job.extent[2], i3 = i / job.extent[2];
    int64_t row = i1;
    if (job.numbers[0] > 0) {
        const int64_t outer = (i3 % job.numbers[2]) * job.numbers[1] + i2 % job.numbers[1];
        row = numbers[outer * job.numbers[0] + i1];
        if (row < 0 || row >= job.rows) return -1;
    }
    return job.first + i0 * job.step[0] + row * job.step[1] + i2 * job.step[2] + i3 * job.step[3];
}

template <typename T>
HEADRACE_UNIT void write_element(HEADRACE_MEMORY T* memory, const HEADRACE_MEMORY T* values,
                                 const HEADRACE_MEMORY int64_t* numbers, HEADRACE_PARAMETER WriteJob& job,
                                 int64_t i) {
    const int64_t unit = destination_unit(job, numbers, i);
    if (unit >= 0) memory[unit] = values[i];
}

HEADRACE_UNIT float through_half(float x) {
#if defined(__METAL_VERSION__)
    return float(half(x));
#elif defined(__CUDACC__)
    return __half2float(__float2half_rn(x));
#else
    return ggml_fp16_to_fp32(ggml_fp32_to_fp16(x));
#endif
}

/// To the nearest whole number, halves to an even one.
HEADRACE_UNIT float rounded(float x) {
#if defined(__METAL_VERSION__)
    return rint(x);
#else
    return rintf(x);
#endif
}

/// How 32 values become codes: code = (value - low) * inverse + shift, made a whole number.
struct GroupScale {
    float scale, bias;  ///< as ggml keeps them: of 16 bits
    float low, inverse, shift;
};

HEADRACE_UNIT GroupScale group_with_minimum(const HEADRACE_MEMORY float* values, int bits) {
    float smallest = values[0], largest = values[0];
    for (int i = 1; i < 32; ++i) {
        if (values[i] < smallest) smallest = values[i];
        if (values[i] > largest) largest = values[i];
    }
    const float scale = (largest - smallest) / float((1 << bits) - 1);
    GroupScale group;
    group.scale = through_half(scale);
    group.bias = through_half(smallest);
    group.low = smallest;
    group.inverse = scale != 0 ? 1 / scale : 0;
    group.shift = 0.5f;
    return group;
}

HEADRACE_UNIT GroupScale group_about_zero(const HEADRACE_MEMORY float* values, int bits, int offset) {
    // Where values are equally far from 0, ggml takes the first for the one that keeps its sign.
    float farthest = 0;
    for (int i = 0; i < 32; ++i)
        if (fabs(values[i]) > fabs(farthest)) farthest = values[i];
    const float scale = bits == 8 ? fabs(farthest) / 127 : farthest / float(-offset);
    GroupScale group;
    group.scale = through_half(scale);
    group.bias = float(-offset) * group.scale;
    group.low = 0;
    group.inverse = scale == 0 ? 0 : bits == 8 ? 127 / fabs(farthest) : 1 / scale;
    group.shift = float(offset) + (bits == 8 ? 0 : 0.5f);
    return group;
}

HEADRACE_UNIT int code_of(float value, GroupScale group, int bits) {
    const float position = (value - group.low) * group.inverse;
    if (bits == 8) return int(rounded(position) + group.shift);
    const int code = int(position + group.shift), most = (1 << bits) - 1;
    return code < most ? code : most;
}

/// Values [32 * i, 32 * i + 32) in MLX's order of bits: as ggml quantises Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0.
HEADRACE_UNIT void write_group(HEADRACE_MEMORY uint8_t* memory, const HEADRACE_MEMORY float* values,
                               const HEADRACE_MEMORY int64_t* numbers, HEADRACE_PARAMETER WriteJob& job,
                               int64_t i) {
    const int64_t unit = destination_unit(job, numbers, i);
    if (unit < 0) return;
    values += 32 * i;
    const GroupScale group = job.offset == 0 ? group_with_minimum(values, job.bits)
                                             : group_about_zero(values, job.bits, job.offset);
    HEADRACE_MEMORY float* floats = (HEADRACE_MEMORY float*)memory;
    floats[job.scales + unit] = group.scale;
    if (job.biases >= 0) floats[job.biases + unit] = group.bias;
    HEADRACE_MEMORY uint8_t* codes = memory + unit * 4 * job.bits;
    for (int eight = 0; eight < 4; ++eight, codes += job.bits) {
        uint64_t word = 0;
        for (int k = 0; k < 8; ++k) {
            const int code = code_of(values[8 * eight + k], group, job.bits);
            word |= uint64_t(code) << (job.bits * k);
        }
        for (int byte = 0; byte < job.bits; ++byte) codes[byte] = uint8_t(word >> (8 * byte));
    }
}

}  // namespace mlx
}  // namespace headrace
