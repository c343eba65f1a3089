#include "kernels/int8/quantize_f32.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd/targets.h"
#include "kernels/tensor/element_share.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/quantize_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/int8/requantize-inl.h"
#include "kernels/simd/extremes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE TileVec real_of(const T* x, size_t count, Int8Vec zero, TileVec scale) {
    const Int8Vec integer = count == kLanes ? load_bytes(x) : load_first_bytes(x, count);
    return hn::Mul(hn::ConvertTo(TileTag(), hn::Sub(integer, zero)), scale);
}

// Calls fn(at, count) for vectors of n elements.
template <class Fn>
HWY_INLINE void for_each_vector_of(size_t n, Fn fn) {
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) fn(i, kLanes);
    if (i < n) fn(i, n - i);
}

template <class T>
HWY_INLINE void store_some(Int8Vec x, T* y, size_t count) {
    if (count == kLanes)
        store_bytes(x, y);
    else
        store_first_bytes(x, y, count);
}

template <class T>
void quantize_as(const float* x, float scale, int32_t zero, T* y, size_t n) {
    const TileTag d;
    const TileVec divisor = hn::Set(d, scale);
    const Rounder round({.zero = zero, .low = hwy::LimitsMin<T>(), .high = hwy::LimitsMax<T>()});
    const TileVec lowest = hn::Set(d, static_cast<float>(hwy::LimitsMin<T>() - zero));
    for_each_vector_of(n, [&](size_t i, size_t count) HWY_ATTR {
        const TileVec quotient =
            hn::Div(count == kLanes ? hn::LoadU(d, x + i) : load_first(d, x + i, count), divisor);
        store_some(round(hn::IfThenElse(hn::IsNaN(quotient), lowest, quotient)), y + i, count);
    });
}

struct Range {
    float lowest, highest;
};

// The range of all elements and 0.
HWY_INLINE Range range_of_all(const float* x, size_t n) {
    const TileTag d;
    constexpr size_t kChains = 4;
    TileVec low[kChains], high[kChains];
    for (size_t v = 0; v < kChains; ++v) low[v] = high[v] = hn::Zero(d);
    const auto take = [&](size_t v, TileVec some) HWY_ATTR {
        low[v] = better_of<false>(d, low[v], some), high[v] = better_of<true>(d, high[v], some);
    };
    size_t i = 0;
    for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kChains; ++v) take(v, hn::LoadU(d, x + i + v * kLanes));
    }
    for (; i + kLanes <= n; i += kLanes) take(0, hn::LoadU(d, x + i));
    if (i < n) take(0, load_first(d, x + i, n - i));
    for (size_t v = 1; v < kChains; ++v) {
        low[0] = better_of<false>(d, low[0], low[v]), high[0] = better_of<true>(d, high[0], high[v]);
    }
    HWY_ALIGN float lanes[2][kLanes];
    hn::Store(low[0], d, lanes[0]), hn::Store(high[0], d, lanes[1]);
    return {best_of_run<false>(lanes[0], kLanes), best_of_run<true>(lanes[1], kLanes)};
}

template <class T>
void dequantize_as(const T* x, float scale, int32_t zero, float* y, size_t n) {
    const TileTag d;
    const TileVec factor = hn::Set(d, scale);
    const Int8Vec shift = hn::Set(Int8Tag(), zero);
    for_each_vector_of(n, [&](size_t i, size_t count) HWY_ATTR {
        const TileVec real = real_of(x + i, count, shift, factor);
        count == kLanes ? hn::StoreU(real, d, y + i) : store_first(real, d, y + i, count);
    });
}

template <class A, class B, class Y>
void add_as(const Int8AddArgs& g, size_t begin, size_t n) {
    const TileTag d;
    const A* a = static_cast<const A*>(g.a.data) + begin;
    const B* b = static_cast<const B*>(g.b.data) + begin;
    Y* y = static_cast<Y*>(g.y) + begin;
    const TileVec a_ratio = hn::Set(d, g.a_ratio), b_ratio = hn::Set(d, g.b_ratio),
                  shift = hn::Set(d, g.shift);
    const Int8Vec none = hn::Zero(Int8Tag());
    const Rounder round({.low = g.low, .high = g.high});
    for_each_vector_of(n, [&](size_t i, size_t count) HWY_ATTR {
        const TileVec shifted = hn::Add(real_of(b + i, count, none, b_ratio), shift);
        store_some(round(hn::Add(real_of(a + i, count, none, a_ratio), shifted)), y + i, count);
    });
}

}  // namespace

void quantize_target(const float* x, float scale, int32_t zero, void* y, bool is_signed, size_t n) {
    if (is_signed)
        quantize_as(x, scale, zero, static_cast<int8_t*>(y), n);
    else
        quantize_as(x, scale, zero, static_cast<uint8_t*>(y), n);
}

void range_target(const float* x, size_t n, float* lowest, float* highest) {
    const Range range = range_of_all(x, n);
    *lowest = range.lowest, *highest = range.highest;
}

void dequantize_target(const void* x, bool is_signed, float scale, int32_t zero, float* y, size_t n) {
    if (is_signed)
        dequantize_as(static_cast<const int8_t*>(x), scale, zero, y, n);
    else
        dequantize_as(static_cast<const uint8_t*>(x), scale, zero, y, n);
}

void add_target(const Int8AddArgs& g, size_t begin, size_t n) {
    const auto with = [&]<class T>(bool is_signed, auto fn) {
        is_signed ? fn.template operator()<int8_t>() : fn.template operator()<uint8_t>();
    };
    with.operator()<void>(g.a.is_signed, [&]<class A>() {
        with.operator()<void>(g.b.is_signed, [&]<class B>() {
            with.operator()<void>(g.is_signed, [&]<class Y>() { add_as<A, B, Y>(g, begin, n); });
        });
    });
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(quantize_target);
HWY_EXPORT(range_target);
HWY_EXPORT(dequantize_target);
HWY_EXPORT(add_target);

// Bytes of a cache line.
static constexpr size_t kGrain = 64;

void quantize_f32(const float* x, float scale, int32_t zero, void* y, bool is_signed, size_t n, int ith,
                  int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(quantize_target)
        (x + begin, scale, zero, static_cast<char*>(y) + begin, is_signed, count);
    });
}

ByteRange byte_range_of(float lowest, float highest) {
    const float scale = highest == lowest ? 1.0f : (highest - lowest) / 255.0f;
    const float zero = std::nearbyint(std::clamp(-lowest / scale, 0.0f, 255.0f));
    return {scale, zero >= 0 ? static_cast<uint8_t>(zero) : uint8_t{0}};
}

void quantize_by_range_f32(const float* x, uint8_t* y, float* scale, uint8_t* zero, size_t n, int ith,
                           int nth) {
    float lowest = 0, highest = 0;
    HWY_DYNAMIC_DISPATCH(range_target)(x, n, &lowest, &highest);
    const ByteRange range = byte_range_of(lowest, highest);
    if (ith == 0) *scale = range.scale, *zero = range.zero;
    quantize_f32(x, range.scale, range.zero, y, false, n, ith, nth);
}

void dequantize_f32(const Bytes& x, float scale, int32_t zero, float* y, size_t n, int ith, int nth) {
    for_share(n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(dequantize_target)
        (static_cast<const char*>(x.data) + begin, x.is_signed, scale, zero, y + begin, count);
    });
}

void int8_add(const Int8AddArgs& args, int ith, int nth) {
    for_share(args.n, kGrain, ith, nth, [&](size_t begin, size_t count) {
        HWY_DYNAMIC_DISPATCH(add_target)(args, begin, count);
    });
}

}  // namespace headrace::kernels
#endif
