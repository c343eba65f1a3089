/* GCC's intrinsics for AMX tiles do not say which memory they read: up to GCC 12 at least, _tile_loadconfig names 8 of
 * its 64 bytes and _tile_loadd none, so the compiler drops or delays the stores before them, and ggml's AMX kernels end
 * with an illegal instruction. Included before every C++ file of ggml; the macros' text is GCC's plus "memory". */
#if defined(__GNUC__) && !defined(__clang__) && defined(__AMX_TILE__)
#include <immintrin.h>

static inline __attribute__((always_inline)) void headrace_tile_loadconfig(const void* config) {
    __asm__ volatile("ldtilecfg\t%0" : : "m"(*(const char(*)[64])config) : "memory");
}
#define _tile_loadconfig headrace_tile_loadconfig

#undef _tile_loadd_internal
#define _tile_loadd_internal(dst, base, stride)                                                              \
    __asm__ volatile("{tileloadd\t(%0,%1,1), %%tmm" #dst "|tileloadd\t%%tmm" #dst ", [%0+%1*1]}"             \
                     :                                                                                       \
                     : "r"((const void*)(base)), "r"((long)(stride))                                         \
                     : "memory")
#endif
