// Rows of A in 8 bits, as block_gemm_int8() multiplies them. Included once per SIMD target.
#if defined(HEADRACE_KERNELS_DYNAMIC_QUANTIZATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_DYNAMIC_QUANTIZATION_INL_H_
#undef HEADRACE_KERNELS_DYNAMIC_QUANTIZATION_INL_H_
#else
#define HEADRACE_KERNELS_DYNAMIC_QUANTIZATION_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "hwy/highway.h"
#include "ir/block_format.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Some rows; element i of a row is about scale[i / 32] · codes[i].
class RoundedRows {
public:
    // What belongs to 32 elements, beside their codes.
    struct Group {
        float scale;
        float sum;           // of the rounded elements: what a minimum of B is multiplied with
        int32_t correction;  // -zero · sum of the codes, for codes of B that are `zero` too large
    };

    // Element (0, 0) of the rows is a[0]. Memory only grows.
    void fill(const float* a, ptrdiff_t lda, size_t rows, size_t k, int zero) {
        k_ = k, groups_ = k / kBlockElements, zero_ = zero;
        if (codes_.size() < rows * k_) codes_.resize(rows * k_);
        if (scales_.size() < rows * groups_) scales_.resize(rows * groups_);
        for (size_t r = 0; r < rows; ++r)
            for (size_t g = 0; g < groups_; ++g)
                round_group(a + static_cast<ptrdiff_t>(r) * lda + g * kBlockElements,
                            codes_.data() + r * k_ + g * kBlockElements, scales_[r * groups_ + g]);
    }
    const int8_t* codes(size_t row) const { return codes_.data() + row * k_; }
    const Group* groups(size_t row) const { return scales_.data() + row * groups_; }

private:
    HWY_INLINE void round_group(const float* a, int8_t* codes, Group& group) const {
        const hn::CappedTag<float, 16> d;
        const hn::RebindToSigned<decltype(d)> d32;
        const hn::Rebind<int8_t, decltype(d)> d8;
        constexpr size_t kSteps = kBlockElements / HWY_MIN(16, kLanes);
        hn::Vec<decltype(d)> x[kSteps];
        auto bits = hn::Zero(d32);
        for (size_t i = 0; i < kSteps; ++i) {
            x[i] = hn::LoadU(d, a + i * hn::Lanes(d));
            bits = hn::Max(bits, hn::BitCast(d32, hn::Abs(x[i])));
        }
        // Magnitudes have the order of their bits, in which infinity and NaN come last.
        const int32_t largest_bits = hn::GetLane(hn::MaxOfLanes(d32, bits));
        float largest;
        std::memcpy(&largest, &largest_bits, sizeof(largest));
        const float scale = largest / 127.0f;
        const auto inverse = hn::Set(d, scale > 0 ? 1.0f / scale : 0.0f);
        auto sum = hn::Zero(d32);
        for (size_t i = 0; i < kSteps; ++i) {
            const auto code = hn::NearestInt(hn::Mul(x[i], inverse));
            sum = hn::Add(sum, code);
            hn::StoreU(hn::DemoteTo(d8, code), d8, codes + i * hn::Lanes(d));
        }
        const int32_t total = hn::GetLane(hn::SumOfLanes(d32, sum));
        constexpr int32_t kInfinity = 0x7F800000;
        group.scale = largest_bits >= kInfinity ? std::numeric_limits<float>::quiet_NaN() : scale;
        group.sum = group.scale * static_cast<float>(total);
        // Codes of NaN may have any sum, which must not overflow.
        group.correction = static_cast<int32_t>(-static_cast<uint32_t>(zero_) * static_cast<uint32_t>(total));
    }

    size_t k_ = 0, groups_ = 0;
    int zero_ = 0;
    std::vector<int8_t> codes_;
    std::vector<Group> scales_;
};

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_DYNAMIC_QUANTIZATION_INL_H_
