#include "kernels/gemm/bf16_gemm_f32.h"

#include <algorithm>
#include <cstring>

#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/bf16_gemm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/packed_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3

namespace {

// Two neighbours of a row of A, or two rows of a column of B, in each lane. The instructions are written out
// since those of this target's own set do not include them, and the compiler takes their names only in
// functions that are marked as using them, which templates shared with other kernels cannot be.
struct Bf16Pairs {
    using Left = uint32_t;
    using Element = uint32_t;
    using Pairs = hn::Vec<hn::RebindToUnsigned<TileTag>>;

    static HWY_INLINE Pairs load(const uint32_t* from) {
        return hn::LoadU(hn::RebindToUnsigned<TileTag>(), from);
    }
    static HWY_INLINE Pairs broadcast(const uint32_t* from) {
        return hn::Set(hn::RebindToUnsigned<TileTag>(), *from);
    }
    static HWY_INLINE TileVec multiply_add(Pairs a, Pairs b, TileVec sum) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
        return sum;
    }
    // 32 neighbours, rounded.
    static HWY_INLINE Pairs round(TileVec first, TileVec second) {
        Pairs pairs;
        asm("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs.raw) : "v"(first.raw), "v"(second.raw));
        return pairs;
    }
};

void round_row(const float* from, size_t count, uint32_t* to) {
    const TileTag d;
    constexpr size_t kStep = 2 * kLanes;
    size_t i = 0;
    for (; i + kStep <= count; i += kStep, to += kLanes)
        hn::StoreU(Bf16Pairs::round(hn::LoadU(d, from + i), hn::LoadU(d, from + i + kLanes)),
                   hn::RebindToUnsigned<TileTag>(), to);
    if (i == count) return;
    const size_t rest = count - i, second = rest > kLanes ? rest - kLanes : 0;
    const auto pairs = Bf16Pairs::round(load_first(d, from + i, std::min(rest, kLanes)),
                                        load_first(d, from + i + kLanes, second));
    alignas(64) uint32_t lanes[kLanes];
    hn::Store(pairs, hn::RebindToUnsigned<TileTag>(), lanes);
    std::memcpy(to, lanes, divide_up(rest, 2) * sizeof(*to));
}

// What a thread keeps from one product to the next.
uint32_t* rounded_block(size_t pairs) {
    static thread_local AlignedBuffer buffer;
    if (buffer.bytes() < pairs * sizeof(uint32_t)) {
        auto made = AlignedBuffer::allocate(pairs * sizeof(uint32_t), "rounded rows");
        if (!made.ok()) throw std::bad_alloc();
        buffer = std::move(made).value();
    }
    return reinterpret_cast<uint32_t*>(buffer.data());
}

}  // namespace

void bf16_gemm(const GemmArgs& args, const uint16_t* packed, int ith, int nth) {
    GemmArgs pairs = args;
    pairs.k = divide_up(args.k, 2);
    const auto rounded = [&](size_t row, size_t row_end, size_t k0, size_t k1) {
        const size_t depth = k1 - k0, count = std::min(2 * k1, args.k) - 2 * k0;
        uint32_t* block = rounded_block((row_end - row) * depth);
        for (size_t r = row; r < row_end; ++r)
            round_row(args.a + static_cast<ptrdiff_t>(r) * args.lda + 2 * k0, count,
                      block + (r - row) * depth);
        return std::pair<const uint32_t*, ptrdiff_t>(block, static_cast<ptrdiff_t>(depth));
    };
    for_each_rect(1, pairs.m, pairs.n, tile_rows(kTileVecs), ith, nth, [&](const Rect& rect) {
        run_packed<Bf16Pairs>(pairs, reinterpret_cast<const uint32_t*>(packed), rect, rounded);
    });
}

bool multiplies_bf16() { return cpu_features().avx512_bf16; }

#else

void bf16_gemm(const GemmArgs&, const uint16_t*, int, int) {}
bool multiplies_bf16() { return false; }

#endif

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(bf16_gemm);
HWY_EXPORT(multiplies_bf16);

bool has_bf16_gemm() { return HWY_DYNAMIC_DISPATCH(multiplies_bf16)(); }

size_t packed_bf16_bytes(size_t k, size_t n) { return (k + 1) / 2 * packed_width(n) * sizeof(uint32_t); }

void pack_bf16(const uint16_t* b, ptrdiff_t stride_k, ptrdiff_t stride_n, size_t k, size_t n,
               uint16_t* packed) {
    pack_16_bits<2>(b, stride_k, stride_n, k, n, packed);
}

void bf16_gemm_f32(const GemmArgs& args, const uint16_t* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(bf16_gemm)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
