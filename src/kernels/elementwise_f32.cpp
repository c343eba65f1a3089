#include "kernels/elementwise_f32.h"

#include <algorithm>
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

template <class Fn>
HWY_INLINE void map_gate(const float* gate, const float* x, float* y, size_t n, Fn fn) {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    size_t i = 0;
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(hn::Mul(fn(d, hn::LoadU(d, gate + i)), hn::LoadU(d, x + i)), d, y + i);
    if (i < n)
        store_first(hn::Mul(fn(d, load_first(d, gate + i, n - i)), load_first(d, x + i, n - i)), d, y + i,
                    n - i);
}

// y = a · c + b · s of n floats, b negated if kNegate.
template <bool kNegate>
HWY_INLINE void rotate_half(const float* a, const float* b, const float* c, const float* s, float* y,
                            size_t n) {
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    const auto one = [&](auto load) HWY_ATTR {
        const auto product = hn::Mul(load(b), load(s));
        return kNegate ? hn::MulSub(load(a), load(c), product) : hn::MulAdd(load(a), load(c), product);
    };
    size_t i = 0;
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(one([&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); }), d, y + i);
    if (i < n)
        store_first(one([&](const float* p) HWY_ATTR { return load_first(d, p + i, n - i); }), d, y + i,
                    n - i);
}

}  // namespace

// What both kinds of maps below choose from, so that the list stands once.
#define HEADRACE_FUNCTIONS(MAP)                           \
    switch (op) {                                         \
        case Unary::exp: return MAP(vec_exp);             \
        case Unary::log: return MAP(vec_log);             \
        case Unary::tanh: return MAP(vec_tanh);           \
        case Unary::sigmoid: return MAP(vec_sigmoid);     \
        case Unary::erf: return MAP(vec_erf);             \
        case Unary::gelu_erf: return MAP(vec_gelu_erf);   \
        case Unary::gelu_tanh: return MAP(vec_gelu_tanh); \
        case Unary::silu: return MAP(vec_silu);           \
        case Unary::relu: return MAP(vec_relu);           \
        case Unary::sqrt: return MAP(vec_sqrt);           \
    }
#define HEADRACE_MAP(function) map(x, y, n, [](auto d, auto v) HWY_ATTR { return function(d, v); })
#define HEADRACE_MAP_GATE(function) \
    map_gate(gate, x, y, n, [](auto d, auto v) HWY_ATTR { return function(d, v); })

void unary_f32_target(Unary op, const float* x, float* y, size_t n) { HEADRACE_FUNCTIONS(HEADRACE_MAP) }

void gated_f32_target(Unary op, const float* gate, const float* x, float* y, size_t n) {
    HEADRACE_FUNCTIONS(HEADRACE_MAP_GATE)
}

#undef HEADRACE_MAP_GATE
#undef HEADRACE_MAP
#undef HEADRACE_FUNCTIONS

void rotate_row_target(const float* x, const float* cos, const float* sin, float* y, size_t n,
                       bool interleaved) {
    const size_t half = n / 2;
    if (interleaved) {
        for (size_t i = 0; i + 1 < n; i += 2) {
            y[i] = x[i] * cos[i] - x[i + 1] * sin[i];
            y[i + 1] = x[i + 1] * cos[i + 1] + x[i] * sin[i + 1];
        }
    } else {
        rotate_half<true>(x, x + half, cos, sin, y, half);
        rotate_half<false>(x + half, x, cos + half, sin + half, y + half, half);
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(unary_f32_target);
HWY_EXPORT(gated_f32_target);
HWY_EXPORT(rotate_row_target);

namespace {

// Calls run(begin, count) for a thread's share, which begins on a whole cache line of 16 floats, so that two
// threads do not write to the same one.
template <class Run>
void for_share(size_t n, int ith, int nth, Run run) {
    const size_t lines = (n + 15) / 16, begin = lines * ith / nth * 16;
    const size_t end = std::min(n, lines * (ith + 1) / nth * 16);
    if (begin < end) run(begin, end - begin);
}

}  // namespace

void unary_f32(Unary op, const float* x, float* y, size_t n, int ith, int nth) {
    for_share(n, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(unary_f32_target)(op, x + begin, y + begin, count);
    });
}

void gated_f32(Unary op, const float* gate, const float* x, float* y, size_t n, int ith, int nth) {
    for_share(n, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(gated_f32_target)(op, gate + begin, x + begin, y + begin, count);
    });
}

void rotate_row_f32(const float* x, const float* cos, const float* sin, float* y, size_t n,
                    bool interleaved) {
    HWY_DYNAMIC_DISPATCH(rotate_row_target)(x, cos, sin, y, n, interleaved);
}

}  // namespace headrace::kernels
#endif
