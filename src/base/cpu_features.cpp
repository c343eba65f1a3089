#include "base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>

#include <cstdint>
#endif

namespace headrace {
namespace {

#if defined(__x86_64__)

/// Which registers the system saves when it switches threads (XCR0).
std::uint64_t saved_registers() {
    std::uint32_t low = 0, high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return std::uint64_t{high} << 32 | low;
}

bool has_all(std::uint64_t of, std::uint64_t bits) { return (of & bits) == bits; }

/// Bits as in Intel's manual, volume 2, CPUID: leaf 1, and leaf 7 with subleaf 0 and 1.
CpuFeatures detect() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr std::uint64_t kOsxsave = 1u << 27, kYmm = 0x6, kZmm = 0xe6;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_all(c, kOsxsave)) return {};
    const std::uint64_t saved = saved_registers();
    if (!has_all(saved, kYmm) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return {};
    const bool has_zmm = has_all(saved, kZmm);
    CpuFeatures found{.avx512f = has_zmm && b >> 16 & 1, .avx512_vnni = has_zmm && c >> 11 & 1};
    found.avx512_vnni_vl = found.avx512_vnni && b >> 31 & 1;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
        found.avx_vnni = a >> 4 & 1;
        found.avx512_bf16 = has_zmm && a >> 5 & 1;
    }
    return found;
}

#else

CpuFeatures detect() { return {}; }

#endif

}  // namespace

const CpuFeatures& cpu_features() {
    static const CpuFeatures features = detect();
    return features;
}

}  // namespace headrace
