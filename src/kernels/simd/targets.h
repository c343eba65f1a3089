// The instruction sets that the kernels are compiled for. Include before any Highway
// header, in every kernel source.
#pragma once

// Kept: AVX-512 (AVX3), AVX2 and SSE4 on x86, NEON on Arm, and Highway's scalar fallback where nothing else
// is baseline. SSSE3 machines are too old to tune for; SVE vectors have no size at compile time, so they
// cannot be held in the arrays that the GEMM tiles keep in registers.
#define HEADRACE_NEVER_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
// HEADRACE_KERNEL_TARGETS=native: beside the baseline only what this machine has best
// (cmake/kernel_targets.cmake).
#if defined(HEADRACE_NATIVE_AVX512)
#define HWY_DISABLED_TARGETS (HEADRACE_NEVER_TARGETS | HWY_SSE4 | HWY_AVX2)
#elif defined(HEADRACE_NATIVE_AVX2)
#define HWY_DISABLED_TARGETS (HEADRACE_NEVER_TARGETS | HWY_SSE4 | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS HEADRACE_NEVER_TARGETS
#endif
