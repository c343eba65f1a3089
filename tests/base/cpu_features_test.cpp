#include "base/cpu_features.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

#if defined(__x86_64__)

TEST(CpuFeatures, AreWhatTheCompilersOwnLibrarySays) {
    const CpuFeatures& found = cpu_features();
    EXPECT_EQ(found.avx512f, bool(__builtin_cpu_supports("avx512f")));
    EXPECT_EQ(found.avx512_vnni, bool(__builtin_cpu_supports("avx512vnni")));
    EXPECT_EQ(found.avx512_vnni_vl,
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"));
    EXPECT_EQ(found.avx512_bf16, bool(__builtin_cpu_supports("avx512bf16")));
    EXPECT_EQ(found.avx_vnni, bool(__builtin_cpu_supports("avxvnni")));
}

#else

TEST(CpuFeatures, AreNoneOfX86Elsewhere) {
    EXPECT_FALSE(cpu_features().avx512f);
    EXPECT_FALSE(cpu_features().avx_vnni);
}

#endif

}  // namespace
}  // namespace headrace
