#include "kernels/elementwise_f32.h"

#include <cstddef>

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd_math-inl.h"
#include "kernels/simd_memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

template <class Fn>
HWY_INLINE void map(const float* x, float* y, size_t n, Fn fn) {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    // Two vectors a turn: these functions are chains of dependent multiply-adds.
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
        const auto fa = fn(d, a), fb = fn(d, b);
        hn::StoreU(fa, d, y + i);
        hn::StoreU(fb, d, y + i + lanes);
    }
    for (; i + lanes <= n; i += lanes) hn::StoreU(fn(d, hn::LoadU(d, x + i)), d, y + i);
    if (i < n) store_first(fn(d, load_first(d, x + i, n - i)), d, y + i, n - i);
}

}  // namespace

#define HEADRACE_MAP(function) map(x, y, n, [](auto d, auto v) HWY_ATTR { return function(d, v); })

void unary_f32_target(Unary op, const float* x, float* y, size_t n) {
    switch (op) {
        case Unary::exp: return HEADRACE_MAP(vec_exp);
        case Unary::log: return HEADRACE_MAP(vec_log);
        case Unary::tanh: return HEADRACE_MAP(vec_tanh);
        case Unary::sigmoid: return HEADRACE_MAP(vec_sigmoid);
        case Unary::erf: return HEADRACE_MAP(vec_erf);
        case Unary::gelu_erf: return HEADRACE_MAP(vec_gelu_erf);
        case Unary::gelu_tanh: return HEADRACE_MAP(vec_gelu_tanh);
        case Unary::silu: return HEADRACE_MAP(vec_silu);
        case Unary::relu: return HEADRACE_MAP(vec_relu);
    }
}

#undef HEADRACE_MAP

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(unary_f32_target);

void unary_f32(Unary op, const float* x, float* y, size_t n, int ith, int nth) {
    // Shares begin on whole cache lines of 16 floats, so two threads do not write to the same one.
    const size_t lines = (n + 15) / 16;
    const size_t begin = lines * ith / nth * 16;
    size_t end = lines * (ith + 1) / nth * 16;
    if (end > n) end = n;
    if (begin < end) HWY_DYNAMIC_DISPATCH(unary_f32_target)(op, x + begin, y + begin, end - begin);
}

}  // namespace headrace::kernels
#endif
