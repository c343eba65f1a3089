#include "kernels/tensor/convert_f32.h"

#include <cstdint>

#include "kernels/simd/targets.h"
#include "kernels/tensor/element_share.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/convert_f32.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/simd/half_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<uint32_t>;
using Shorts = hn::Rebind<uint16_t, Floats>;

template <class To, class From>
void convert_rest(const From* x, To* y, size_t begin, size_t n) {
    for (size_t i = begin; i < n; ++i) y[i] = static_cast<To>(static_cast<float>(x[i]));
}

}  // namespace

void to_half_floats(const float* x, Half* y, size_t n) {
    size_t i = 0;
    if constexpr (kConvertsHalfFloats) {
        const Floats d;
        const hn::Rebind<hwy::float16_t, Floats> half;
        auto* to = reinterpret_cast<hwy::float16_t*>(y);
        for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
            hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, x + i)), half, to + i);
    }
    convert_rest(x, y, i, n);
}

void from_half_floats(const Half* x, float* y, size_t n) {
    size_t i = 0;
    if constexpr (kConvertsHalfFloats) {
        const Floats d;
        const hn::Rebind<hwy::float16_t, Floats> half;
        const auto* from = reinterpret_cast<const hwy::float16_t*>(x);
        for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
            hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, from + i)), d, y + i);
    }
    convert_rest(x, y, i, n);
}

void bfloats_of(const float* x, BFloat16* y, size_t n) {
    const Words d;
    const hn::RebindToSigned<Words> di;
    auto* to = reinterpret_cast<uint16_t*>(y);
    size_t i = 0;
    for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
        const auto v = hn::LoadU(Floats(), x + i);
        const auto bits = hn::BitCast(d, v), upper = hn::ShiftRight<16>(bits);
        const auto odd = hn::And(upper, hn::Set(d, 1));
        const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFF))));
        const auto quiet = hn::Or(upper, hn::Set(d, 0x40));
        const auto is_nan = hn::RebindMask(d, hn::IsNaN(v));
        const auto word = hn::IfThenElse(is_nan, quiet, rounded);
        hn::StoreU(hn::DemoteTo(Shorts(), hn::BitCast(di, word)), Shorts(), to + i);
    }
    convert_rest(x, y, i, n);
}

void floats_of_bfloats(const BFloat16* x, float* y, size_t n) {
    const Words d;
    const auto* from = reinterpret_cast<const uint16_t*>(x);
    size_t i = 0;
    for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
        const auto word = hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(Shorts(), from + i)));
        hn::StoreU(hn::BitCast(Floats(), word), Floats(), y + i);
    }
    convert_rest(x, y, i, n);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(to_half_floats);
HWY_EXPORT(from_half_floats);
HWY_EXPORT(bfloats_of);
HWY_EXPORT(floats_of_bfloats);

// Cache lines of either side end there.
static constexpr size_t kGrain = 32;

void convert_f32(const float* x, Half* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(to_half_floats)(x + begin, y + begin, count);
    });
}

void convert_f32(const float* x, BFloat16* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(bfloats_of)(x + begin, y + begin, count);
    });
}

void convert_f32(const Half* x, float* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(from_half_floats)(x + begin, y + begin, count);
    });
}

void convert_f32(const BFloat16* x, float* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(floats_of_bfloats)(x + begin, y + begin, count);
    });
}

}  // namespace headrace::kernels
#endif
