#include "kernels/gemm/gemv_f32.h"

#include <algorithm>
#include <cstring>

#include "hwy/cache_control.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemv_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/half_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Rows of x and of w that a tile multiplies: as many sums as hide the latency of a multiplication.
constexpr size_t kMaxRows = 4, kColumns = 4;

// The matrices have in common: a cursor over one of their rows, which gives kVecs vectors of values at a
// time, where they lie in memory, and a last part of a row that fills no vector.

struct F32Matrix {
    static constexpr size_t kStep = kLanes;
    const float* w;
    ptrdiff_t stride;

    struct Cursor {
        const float* at;
        HWY_INLINE void values(size_t l, TileVec* out) const { out[0] = hn::LoadU(TileTag(), at + l); }
        HWY_INLINE const void* memory(size_t l) const { return at + l; }
        float value(size_t l) const { return at[l]; }
    };
    Cursor row(size_t j) const { return {w + static_cast<ptrdiff_t>(j) * stride}; }
};

template <class Half>
struct HalfMatrix {
    static constexpr size_t kStep = kLanes;
    const uint16_t* w;
    ptrdiff_t stride;

    struct Cursor {
        const uint16_t* at;
        HWY_INLINE void values(size_t l, TileVec* out) const { out[0] = widen<Half>(at + l); }
        HWY_INLINE const void* memory(size_t l) const { return at + l; }
        float value(size_t l) const {
            return hwy::IsSame<Half, hwy::bfloat16_t>() ? bfloat_to_float(at[l]) : half_to_float(at[l]);
        }
    };
    Cursor row(size_t j) const { return {w + static_cast<ptrdiff_t>(j) * stride}; }
};

// kAffineGroup codes as bytes. `spread` is a place for those that are not bytes in memory.
HWY_INLINE const uint8_t* spread_codes(std::integral_constant<int, 8>, const uint8_t* codes, uint8_t*) {
    return codes;
}

HWY_INLINE const uint8_t* spread_codes(std::integral_constant<int, 4>, const uint8_t* codes,
                                       uint8_t* spread) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < kAffineGroup; ++i) spread[i] = codes[i / 2] >> (i % 2 * 4) & 15;
#else
    const hn::FixedTag<uint8_t, 16> d;
    const auto both = hn::LoadU(d, codes);
    const auto low = hn::And(both, hn::Set(d, 15)), high = hn::ShiftRight<4>(both);
    hn::Store(hn::InterleaveLower(d, low, high), d, spread);
    hn::Store(hn::InterleaveUpper(d, low, high), d, spread + 16);
#endif
    return spread;
}

// Eight codes are five bytes. Each is brought into 16 bits with the byte that follows it, moved to the top of
// them and back down.
HWY_INLINE const uint8_t* spread_codes(std::integral_constant<int, 5>, const uint8_t* codes,
                                       uint8_t* spread) {
#if HWY_TARGET == HWY_SCALAR
    for (size_t i = 0; i < kAffineGroup; ++i) {
        const size_t bit = 5 * i;
        const unsigned next = bit % 8 > 3 ? codes[bit / 8 + 1] : 0u;
        spread[i] = (codes[bit / 8] | next << 8) >> bit % 8 & 31;
    }
#else
    const hn::FixedTag<uint8_t, 16> d;
    const hn::FixedTag<uint16_t, 8> d16;
    const hn::FixedTag<int16_t, 8> signed16;
    alignas(16) static constexpr uint8_t kFirst[16] = {0, 1, 0, 1, 1, 2, 1, 2, 2, 3, 3, 4, 3, 4, 4, 5};
    alignas(16) static constexpr uint16_t kToTop[8] = {1 << 11, 1 << 6,  1 << 9, 1 << 4,
                                                       1 << 7,  1 << 10, 1 << 5, 1 << 8};
    const auto eight = [&](auto bytes, uint8_t at, uint8_t* to) HWY_ATTR {
        // The last code has no bits in the byte behind it, so that may be any.
        const auto index = hn::And(hn::Add(hn::Load(d, kFirst), hn::Set(d, at)), hn::Set(d, 15));
        const auto pairs = hn::BitCast(d16, hn::TableLookupBytes(bytes, index));
        const auto values = hn::ShiftRight<11>(hn::Mul(pairs, hn::Load(d16, kToTop)));
        const hn::Rebind<uint8_t, decltype(signed16)> d8;
        hn::StoreU(hn::DemoteTo(d8, hn::BitCast(signed16, values)), d8, to);
    };
    // 20 bytes as two vectors, of which the second begins 4 later.
    const auto begin = hn::LoadU(d, codes), end = hn::LoadU(d, codes + 4);
    eight(begin, 0, spread);
    eight(begin, 5, spread + 8);
    eight(end, 6, spread + 16);
    eight(end, 11, spread + 24);
#endif
    return spread;
}

template <int kBits, bool kHasBiases>
struct AffineRows {
    static constexpr size_t kStep = kAffineGroup;
    AffineMatrix w;

    struct Cursor {
        const uint8_t* codes;
        const float *scales, *biases;
        float offset;

        HWY_INLINE void values(size_t l, TileVec* out) const {
            const TileTag d;
            const hn::Rebind<uint8_t, TileTag> d8;
            const hn::Rebind<int32_t, TileTag> d32;
            alignas(64) uint8_t place[kAffineGroup];
            const uint8_t* bytes =
                spread_codes(std::integral_constant<int, kBits>(), codes + l / 8 * kBits, place);
            const size_t group = l / kAffineGroup;
            const TileVec scale = hn::Set(d, scales[group]);
            const TileVec bias = kHasBiases ? hn::Set(d, biases[group]) : hn::Set(d, -offset * scales[group]);
            HWY_UNROLL(16)
            for (size_t v = 0; v < kAffineGroup / kLanes; ++v) {
                const auto code = hn::PromoteTo(d32, hn::LoadU(d8, bytes + v * kLanes));
                out[v] = hn::MulAdd(hn::ConvertTo(d, code), scale, bias);
            }
        }
        HWY_INLINE const void* memory(size_t l) const { return codes + l / 8 * kBits; }
        float value(size_t) const { return 0; }  // a row is whole groups
    };
    Cursor row(size_t row) const {
        const auto j = static_cast<ptrdiff_t>(row);
        return {w.codes + j * w.code_stride, w.scales + j * w.scale_stride,
                kHasBiases ? w.biases + j * w.scale_stride : nullptr, w.offset};
    }
};

// y[0, kRows)[j, j + kCols) of args that begin at the tile's first row.
template <size_t kRows, size_t kCols, class Matrix>
HWY_NOINLINE void gemv_tile(const GemvArgs& g, const Matrix& w, size_t j) {
    constexpr size_t kVecs = Matrix::kStep / kLanes;
    const TileTag d;
    TileVec sum[kRows][kCols];
    typename Matrix::Cursor row[kCols];
    typename Matrix::Cursor next[kCols];  // of the next tile, which the processor does not foresee
    for (size_t c = 0; c < kCols; ++c) {
        row[c] = w.row(j + c);
        next[c] = w.row(std::min(j + kCols + c, g.n - 1));
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(16)
        for (size_t c = 0; c < kCols; ++c) sum[r][c] = hn::Zero(d);
    }
    size_t l = 0;
    for (; l + Matrix::kStep <= g.k; l += Matrix::kStep) {
        HWY_UNROLL(16)
        for (size_t c = 0; c < kCols; ++c) {
            TileVec values[kVecs];
            row[c].values(l, values);
            hwy::Prefetch(next[c].memory(l));
            HWY_UNROLL(16)
            for (size_t r = 0; r < kRows; ++r) {
                HWY_UNROLL(16)
                for (size_t v = 0; v < kVecs; ++v)
                    sum[r][c] =
                        hn::MulAdd(hn::LoadU(d, g.x + r * g.k + l + v * kLanes), values[v], sum[r][c]);
            }
        }
    }
    for (size_t r = 0; r < kRows; ++r)
        for (size_t c = 0; c < kCols; ++c) {
            float total = hn::GetLane(hn::SumOfLanes(d, sum[r][c]));
            for (size_t i = l; i < g.k; ++i) total += g.x[r * g.k + i] * row[c].value(i);
            g.y[static_cast<ptrdiff_t>(r) * g.ldy + static_cast<ptrdiff_t>(j + c)] = total;
        }
}

template <size_t kRows, class Matrix>
void gemv_strip(const GemvArgs& g, const Matrix& w) {
    size_t j = 0;
    for (; j + kColumns <= g.n; j += kColumns) gemv_tile<kRows, kColumns>(g, w, j);
    for (; j < g.n; ++j) gemv_tile<kRows, 1>(g, w, j);
}

template <class Matrix>
void multiply(GemvArgs g, const Matrix& w) {
    for (size_t left = g.rows; left > 0;) {
        const size_t rows = std::min(left, kMaxRows);
        switch (rows) {
            case 1: gemv_strip<1>(g, w); break;
            case 2: gemv_strip<2>(g, w); break;
            case 3: gemv_strip<3>(g, w); break;
            default: gemv_strip<4>(g, w); break;
        }
        left -= rows;
        g.x += rows * g.k;
        g.y += static_cast<ptrdiff_t>(rows) * g.ldy;
    }
}

}  // namespace

void gemv_target_f32(const GemvArgs& g, const float* w, ptrdiff_t stride) {
    multiply(g, F32Matrix{w, stride});
}

void gemv_target_half(const GemvArgs& g, const uint16_t* w, ptrdiff_t stride, bool is_bf16) {
    if (is_bf16)
        multiply(g, HalfMatrix<hwy::bfloat16_t>{w, stride});
    else
        multiply(g, HalfMatrix<hwy::float16_t>{w, stride});
}

template <int kBits>
void gemv_target_codes(const GemvArgs& g, const AffineMatrix& w) {
    if (w.biases)
        multiply(g, AffineRows<kBits, true>{w});
    else
        multiply(g, AffineRows<kBits, false>{w});
}

void gemv_target_affine(const GemvArgs& g, const AffineMatrix& w) {
    if (w.bits == 4)
        gemv_target_codes<4>(g, w);
    else if (w.bits == 5)
        gemv_target_codes<5>(g, w);
    else
        gemv_target_codes<8>(g, w);
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(gemv_target_f32);
HWY_EXPORT(gemv_target_half);
HWY_EXPORT(gemv_target_affine);

void gemv_f32(const GemvArgs& args, const float* w, std::ptrdiff_t stride) {
    HWY_DYNAMIC_DISPATCH(gemv_target_f32)(args, w, stride);
}
void gemv_half(const GemvArgs& args, const std::uint16_t* w, std::ptrdiff_t stride, bool is_bf16) {
    HWY_DYNAMIC_DISPATCH(gemv_target_half)(args, w, stride, is_bf16);
}
void gemv_affine(const GemvArgs& args, const AffineMatrix& w) {
    HWY_DYNAMIC_DISPATCH(gemv_target_affine)(args, w);
}

}  // namespace headrace::kernels
#endif
