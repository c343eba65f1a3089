// Reads what a small window meets for a vector of neighbouring outputs straight from an image's row, without
// a padded copy. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_IMAGE_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_IMAGE_TAPS_INL_H_
#undef HEADRACE_KERNELS_IMAGE_TAPS_INL_H_
#else
#define HEADRACE_KERNELS_IMAGE_TAPS_INL_H_
#endif

#include <algorithm>
#include <cstddef>

#include "hwy/highway.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Steps of two are taken apart into even and odd columns, which a vector of one lane does not have.
inline constexpr bool kHasTaps = HWY_TARGET != HWY_SCALAR;

// kTaps neighbouring columns for each of the outputs [x, x + kLanes) of a row, of which output o begins at
// column o * kStride - pad of the image.
template <size_t kTaps, size_t kStride>
class ImageTaps {
    static_assert(kStride == 1 || kStride == 2);

public:
    ImageTaps(size_t x, ptrdiff_t pad, size_t in_w) : first_(static_cast<ptrdiff_t>(x * kStride) - pad) {
        for (size_t i = 0; i < kLoads; ++i) ranges_[i] = LaneRange(first_ + offset(i), in_w);
    }

    // tap[k] = column k of each window in `row`, and `outside` where that lies beyond the image.
    HWY_INLINE void load(const float* row, TileVec outside, TileVec (&tap)[kTaps]) const {
        const TileTag d;
        const float* from = row + first_;
        if constexpr (kStride == 1) {
            HWY_UNROLL(8)
            for (size_t k = 0; k < kTaps; ++k) tap[k] = ranges_[k].load(d, from + k, outside);
        } else {
#if HWY_TARGET != HWY_SCALAR
            HWY_UNROLL(8)
            for (size_t k = 0; k < kTaps; k += 2) {
                const TileVec low = ranges_[k].load(d, from + k, outside);
                const TileVec high = ranges_[k + 1].load(d, from + k + kLanes, outside);
                tap[k] = hn::ConcatEven(d, high, low);
                if (k + 1 < kTaps) tap[k + 1] = hn::ConcatOdd(d, high, low);
            }
#endif
        }
    }

private:
    static constexpr size_t kLoads = kStride == 1 ? kTaps : (kTaps + 1) / 2 * 2;
    static constexpr ptrdiff_t offset(size_t i) {
        return static_cast<ptrdiff_t>(kStride == 1 ? i : i / 2 * 2 + i % 2 * kLanes);
    }

    // The lanes of a vector from column `at` on that lie within a row of `size` columns.
    class LaneRange {
    public:
        LaneRange() = default;
        LaneRange(ptrdiff_t at, size_t size) {
            const auto lanes = static_cast<ptrdiff_t>(kLanes), end = static_cast<ptrdiff_t>(size) - at;
            begin_ = static_cast<size_t>(std::clamp<ptrdiff_t>(-at, 0, lanes));
            end_ = static_cast<size_t>(std::clamp<ptrdiff_t>(end, static_cast<ptrdiff_t>(begin_), lanes));
        }
        HWY_INLINE TileVec load(TileTag d, const float* p, TileVec outside) const {
            if (HWY_LIKELY(begin_ == 0 && end_ == kLanes)) return hn::LoadU(d, p);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
            const auto inside = hn::AndNot(hn::FirstN(d, begin_), hn::FirstN(d, end_));
            return hn::IfThenElse(inside, hn::MaskedLoad(inside, d, p), outside);
#else
            HWY_ALIGN float lanes[kLanes];
            hn::Store(outside, d, lanes);
            if (begin_ < end_) std::memcpy(lanes + begin_, p + begin_, (end_ - begin_) * sizeof(float));
            return hn::Load(d, lanes);
#endif
        }

    private:
        size_t begin_ = 0, end_ = 0;
    };

    ptrdiff_t first_;
    LaneRange ranges_[kLoads];
};

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_IMAGE_TAPS_INL_H_
