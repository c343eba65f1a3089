#include "kernels/tensor/elementwise_f32.h"

#include <cmath>
#include <cstddef>

#include "kernels/simd/targets.h"
#include "kernels/tensor/element_share.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/elementwise_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Highway reduces angles to a quarter turn with four parts of pi, which is exact up to here.
inline constexpr float kLargestAngle = 39000;

// Also infinities and NaN; and everything on the scalar target, where Highway's sine loses the sign of zero.
template <class D>
HWY_INLINE bool needs_library(D d, hn::Vec<D> x) {
    return HWY_TARGET == HWY_SCALAR || !hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kLargestAngle)));
}

template <class D, class Fn>
HWY_NOINLINE hn::Vec<D> each_lane(D d, hn::Vec<D> x, Fn fn) {
    HWY_ALIGN float lanes[HWY_LANES(float)];
    hn::Store(x, d, lanes);
    for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = fn(lanes[i]);
    return hn::Load(d, lanes);
}

template <class D>
HWY_INLINE hn::Vec<D> vec_sin(D d, hn::Vec<D> x) {
    if (HWY_UNLIKELY(needs_library(d, x))) return each_lane(d, x, [](float v) { return std::sin(v); });
    return hn::Sin(d, x);
}

template <class D>
HWY_INLINE hn::Vec<D> vec_cos(D d, hn::Vec<D> x) {
    if (HWY_UNLIKELY(needs_library(d, x))) return each_lane(d, x, [](float v) { return std::cos(v); });
    return hn::Cos(d, x);
}

// log(1 + eˣ) = max(x, 0) + log(1 + e) with e = e^−|x|, and log(1 + e) = 2 artanh(s) with s = e / (2 + e) ≤
// 1/3: minimax for 2 artanh(s) / s in s², relative error 4e-9.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_softplus(D d, V x) {
    const V e = exp_of_nonpositive(d, hn::Neg(hn::Abs(x)));
    const V s = hn::Div(e, hn::Add(e, hn::Set(d, 2.0f)));
    const V quotient = polynomial(d, hn::Mul(s, s),
                                  {2.000000008f, 0.6666631594f, 0.4002485372f, 0.2796141883f, 0.2817465727f});
    return hn::MulAdd(s, quotient, at_least(d, x, 0.0f));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_hard_swish(D d, V x) {
    const V gate = hn::Mul(hn::Add(x, hn::Set(d, 3.0f)), hn::Set(d, 1.0f / 6));
    return hn::Mul(x, at_most(d, at_least(d, gate, 0.0f), 1.0f));
}

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

// The functions of both kinds of maps below, so that the list stands once.
#define HEADRACE_FUNCTIONS(MAP)                             \
    switch (op) {                                           \
        case Unary::exp: return MAP(vec_exp);               \
        case Unary::log: return MAP(vec_log);               \
        case Unary::tanh: return MAP(vec_tanh);             \
        case Unary::sigmoid: return MAP(vec_sigmoid);       \
        case Unary::erf: return MAP(vec_erf);               \
        case Unary::gelu_erf: return MAP(vec_gelu_erf);     \
        case Unary::gelu_tanh: return MAP(vec_gelu_tanh);   \
        case Unary::silu: return MAP(vec_silu);             \
        case Unary::relu: return MAP(vec_relu);             \
        case Unary::sqrt: return MAP(vec_sqrt);             \
        case Unary::sin: return MAP(vec_sin);               \
        case Unary::cos: return MAP(vec_cos);               \
        case Unary::softplus: return MAP(vec_softplus);     \
        case Unary::hard_swish: return MAP(vec_hard_swish); \
    }
#define HEADRACE_MAP(function) map(x, y, n, [](auto d, auto v) HWY_ATTR { return function(d, v); })
#define HEADRACE_MAP_GATE(function) \
    map_gate(gate, x, y, n, [](auto d, auto v) HWY_ATTR { return function(d, v); })

void unary_f32_target(Unary op, const float* x, float* y, size_t n) { HEADRACE_FUNCTIONS(HEADRACE_MAP) }

void leaky_relu_target(float alpha, const float* x, float* y, size_t n) {
    map(x, y, n, [alpha](auto d, auto v) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, hn::Set(d, alpha)), v);
    });
}

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
HWY_EXPORT(leaky_relu_target);
HWY_EXPORT(gated_f32_target);
HWY_EXPORT(rotate_row_target);

// Floats of a cache line.
static constexpr size_t kGrain = 16;

void unary_f32(Unary op, const float* x, float* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(unary_f32_target)(op, x + begin, y + begin, count);
    });
}

void leaky_relu_f32(float alpha, const float* x, float* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(leaky_relu_target)(alpha, x + begin, y + begin, count);
    });
}

void gated_f32(Unary op, const float* gate, const float* x, float* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(gated_f32_target)(op, gate + begin, x + begin, y + begin, count);
    });
}

void rotate_row_f32(const float* x, const float* cos, const float* sin, float* y, size_t n,
                    bool interleaved) {
    HWY_DYNAMIC_DISPATCH(rotate_row_target)(x, cos, sin, y, n, interleaved);
}

}  // namespace headrace::kernels
#endif
