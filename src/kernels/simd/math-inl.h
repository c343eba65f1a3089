// Elementary functions of f32 vectors, shared by the element-wise kernels and the epilogues of the
// GEMMs. Included once per SIMD target. NaN gives NaN, infinities give the limits;
// elementwise_f32_test.cpp bounds the errors.
#if defined(HEADRACE_KERNELS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_SIMD_MATH_INL_H_
#undef HEADRACE_KERNELS_SIMD_MATH_INL_H_
#else
#define HEADRACE_KERNELS_SIMD_MATH_INL_H_
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/simd/extremes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// min(x, bound) and max(x, bound) that keep a NaN in x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_most(D d, V x, float bound) {
    return better_or_second<false>(hn::Set(d, bound), x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V at_least(D d, V x, float bound) {
    return better_or_second<true>(hn::Set(d, bound), x);
}

// c[0] + c[1] x + … by Horner's rule.
template <class D, size_t kTerms, class V = hn::Vec<D>>
HWY_INLINE V polynomial(D d, V x, const float (&c)[kTerms]) {
    V sum = hn::Set(d, c[kTerms - 1]);
    for (size_t i = kTerms - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
    return sum;
}

// Least argument whose exponential is a normal number. Below it results are 0 rather than subnormal:
// producing or reading a subnormal costs x86 some 150 cycles, and masks of attention would produce them by
// the row.
inline constexpr float kLeastExponent = -87.33654f;

// exp(x) for x in [kLeastExponent, 0], or in [-105, 90] if kPositive; exp(x + rest) with a small second part
// of the argument.
template <bool kPositive, class D, class V = hn::Vec<D>, class... Rest>
HWY_INLINE V exp_in_range(D d, V x, Rest... rest) {
    // Adding 1.5 · 2²³ leaves the rounded integer in the low bits of the sum.
    const V magic = hn::Set(d, 12582912.0f);
    const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
    const V n = hn::Sub(shifted, magic);
    // ln 2 in two parts, the first exact in products with |n| < 2⁹.
    V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
    r = hn::NegMulAdd(n, hn::Set(d, 1.42860682e-6f), r);
    ((r = hn::Add(r, rest)), ...);
    // Minimax for (eʳ − 1 − r) / r² over |r| ≤ ln 2 / 2, relative error 3e-9.
    const V tail =
        polynomial(d, r, {0.49999993437f, 0.16666520478f, 0.04166838986f, 0.00836873556f, 0.00138145598f});
    const V mantissa = hn::Add(hn::MulAdd(tail, hn::Mul(r, r), r), hn::Set(d, 1.0f));
#if HWY_TARGET == HWY_AVX3
    // Highway has no name for this instruction; it saves up to six.
    return V{_mm512_scalef_ps(mantissa.raw, n.raw)};
#else
    const hn::RebindToSigned<D> di;
    const auto bias = hn::Set(di, 127);
    const auto exponent =
        hn::BitCast(di, shifted);  // above its bias of 23 bits; the shift drops what is above
    if constexpr (!kPositive) {
        return hn::Mul(mantissa, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, bias))));
    } else {
        // Two factors, as 2¹²⁸ is none.
        const auto integer = hn::Sub(exponent, hn::BitCast(di, magic)), half = hn::ShiftRight<1>(integer);
        const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
        const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(integer, half), bias)));
        return hn::Mul(hn::Mul(mantissa, first), second);
    }
#endif
}

// With subnormal results: those who ask for an exponential may want them.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_exp(D d, V x) {
    return exp_in_range<true>(d, at_least(d, at_most(d, x, 90.0f), -105.0f));
}

// The same for x ≤ 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of_nonpositive(D d, V x) {
    const V y = exp_in_range<false>(d, at_least(d, x, kLeastExponent));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, kLeastExponent)), y);
}

// 1 / (1 + e⁻ˣ), written with e^−|x| so that both tails keep their relative accuracy.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_sigmoid(D d, V x) {
    const V one = hn::Set(d, 1.0f), e = exp_of_nonpositive(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_silu(D d, V x) {
    x = at_least(d, x, -120.0f);  // −Inf · 0 would be NaN; the limit is −0
    return hn::Mul(x, vec_sigmoid(d, x));
}

// Where tanh and erf round to ±1, rounding of the quotients may step one ULP beyond.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V within_one(D d, V x) {
    return at_most(d, at_least(d, x, -1.0f), 1.0f);
}

// Rational minimax in x² for |x| ≤ 9.02, relative error 2e-8. Beyond the bound tanh is 1 in f32, and this
// bound is one where the quotient is exactly 1, with fused multiply-adds and without.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_tanh(D d, V x) {
    x = at_least(d, at_most(d, x, 9.021f), -9.021f);
    const V x2 = hn::Mul(x, x);
    const V p =
        polynomial(d, x2, {0.99999997902f, 0.13379719333f, 0.00349403618f, 2.058350660e-5f, 1.331910437e-8f});
    const V q = polynomial(d, x2, {1.0f, 0.46713034575f, 0.02587107945f, 3.283095433e-4f, 7.762033290e-7f});
    return within_one(d, hn::Div(hn::Mul(x, p), q));
}

// Rational minimax in x² for |x| ≤ 3.93, relative error 2e-8; the bound is chosen as that of tanh.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_erf(D d, V x) {
    x = at_least(d, at_most(d, x, 3.935f), -3.935f);
    const V x2 = hn::Mul(x, x);
    const V p = polynomial(d, x2,
                           {1.12837914537f, 0.19078358085f, 0.05279025424f, 3.7795988170e-3f,
                            2.8480842126e-4f, 2.0419734191e-6f});
    const V q = polynomial(
        d, x2, {1.0f, 0.50241026599f, 0.11425742014f, 0.01499741655f, 1.1652102851e-3f, 3.8004092666e-5f});
    return within_one(d, hn::Div(hn::Mul(x, p), q));
}

// x Φ(x) = max(x, 0) − |x| Φ(−|x|). The lower tail is Φ(−z) = exp(−z²/2) G(z) with G rational (minimax over
// [0, 14.6], relative error 6e-9), so the result keeps its relative accuracy where 1 + erf(x/√2) would
// cancel. Beyond 13.145 the tail is subnormal and counts as 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_gelu_erf(D d, V x) {
    const V magnitude = hn::Abs(x), limit = hn::Set(d, 13.145f);
    const V z = at_most(d, magnitude, 13.145f);
    // z²/2 in two parts: its rounding error, times e^…, would otherwise cost up to 50 ULP.
    const V half = hn::Mul(z, hn::Set(d, -0.5f));
    const V hi = hn::Mul(half, z);
#if HWY_NATIVE_FMA
    const V lo = hn::MulSub(half, z, hi);
#else
    const auto upper_bits = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0xFFFFF000u));
    const V zh = hn::And(z, upper_bits),
            hh = hn::And(half, upper_bits);  // products of 12-bit halves are exact
    const V zl = hn::Sub(z, zh), hl = hn::Sub(half, hh);
    const V lo = hn::Add(hn::Add(hn::Sub(hn::Mul(hh, zh), hi), hn::Add(hn::Mul(hh, zl), hn::Mul(hl, zh))),
                         hn::Mul(hl, zl));
#endif
    const V p = polynomial(d, z, {0.5f, 0.43849686285f, 0.18338493001f, 0.04068378163f, 4.1238297967e-3f});
    const V q = polynomial(
        d, z, {1.0f, 1.67487871214f, 1.20312488142f, 0.46986612151f, 0.10198549590f, 0.01033679031f});
    const V tail = hn::Mul(exp_in_range<false>(d, hi, lo), hn::Div(hn::Mul(z, p), q));
    return hn::Sub(at_least(d, x, 0.0f), hn::IfThenZeroElse(hn::Gt(magnitude, limit), tail));
}

// 0.5 x (1 + tanh u) = x · sigmoid(2u) with u = √(2/π) (x + 0.044715 x³).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_gelu_tanh(D d, V x) {
    const V low = at_least(d, x, -30.0f);  // sigmoid is 0 there; keeps −Inf from giving NaN
    const V x2 = hn::Mul(low, low);
    const V u = hn::Mul(low, hn::MulAdd(x2, hn::Set(d, 0.07135481627f), hn::Set(d, 1.59576912161f)));
    return hn::Mul(low, vec_sigmoid(d, u));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_log(D d, V x) {
    const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
    V y = hn::Log(d, x);
    y = hn::IfThenElse(hn::Eq(x, inf), inf, y);
    y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), y);
    const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
    return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), y, nan);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_sqrt(D, V x) {
    return hn::Sqrt(x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V vec_relu(D d, V x) {
    return at_least(d, x, 0.0f);
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_SIMD_MATH_INL_H_
