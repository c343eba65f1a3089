#include "kernels/gemm/f16_gemm_f32.h"

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/f16_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/packed_gemm-inl.h"
#include "kernels/simd/half_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Widened anew for each tile of rows: that takes less time than a panel in f32 on its way to the cache and
// back.
template <class Half>
struct HalfColumns : FloatRows {
    using Element = uint16_t;
    static HWY_INLINE TileVec load(const uint16_t* from) { return widen<Half>(from); }
};

template <class Half>
void run_half_floats(const GemmArgs& g, const uint16_t* packed, int ith, int nth) {
    for_each_rect(1, g.m, g.n, tile_rows(kTileVecs), ith, nth,
                  [&](const Rect& rect) { run_packed<HalfColumns<Half>>(g, packed, rect, plain_rows(g)); });
}

}  // namespace

void f16_gemm(const GemmArgs& g, const uint16_t* packed, bool is_bf16, int ith, int nth) {
    if (is_bf16)
        run_half_floats<hwy::bfloat16_t>(g, packed, ith, nth);
    else
        run_half_floats<hwy::float16_t>(g, packed, ith, nth);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(f16_gemm);

std::size_t packed_half_float_bytes(std::size_t k, std::size_t n) { return packed_bytes(k, n) / 2; }

void pack_half_floats(const std::uint16_t* b, std::ptrdiff_t stride_k, std::ptrdiff_t stride_n, std::size_t k,
                      std::size_t n, std::uint16_t* packed) {
    pack_16_bits<1>(b, stride_k, stride_n, k, n, packed);
}

void f16_gemm_f32(const GemmArgs& args, const std::uint16_t* packed, bool is_bf16, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(f16_gemm)(args, packed, is_bf16, ith, nth);
}

}  // namespace headrace::kernels
#endif
