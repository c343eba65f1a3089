#pragma once

namespace headrace {

/// Instructions that some x86-64 CPUs have, where the system keeps their registers; all false elsewhere. For
/// __builtin_cpu_supports a compiler needs a library, which Zig's lacks.
struct CpuFeatures {
    bool avx512f = false;
    bool avx512_vnni = false;     ///< products of bytes, on 512 bits
    bool avx512_vnni_vl = false;  ///< the same on 256 bits
    bool avx512_bf16 = false;
    bool avx_vnni = false;  ///< products of bytes on 256 bits, without AVX-512
};

const CpuFeatures& cpu_features();

}  // namespace headrace
