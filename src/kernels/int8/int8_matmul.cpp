#include "kernels/int8/int8_matmul.h"

#include <algorithm>

#include "kernels/conv/conv_share.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8/int8_matmul.cpp"
#include "hwy/foreach_target.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/int8/pair_strip-inl.h"
#include "kernels/int8/widened_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

static_assert(kPairPanel == kFilterPanel);  // conv_share() deals out panels

template <class A>
void widen_rows(const Int8MatMulArgs& g, size_t first, size_t count, size_t length, int16_t* to) {
    const A* from = static_cast<const A*>(g.a.data) + first * g.k;
    if (length == g.k) return widen(from, count * g.k, to);
    for (size_t r = 0; r < count; ++r, from += g.k, to += length) {
        widen(from, g.k, to);
        std::fill(to + g.k, to + length, int16_t{0});
    }
}

// W: of b as it is packed.
template <class W>
class Int8Product {
public:
    Int8Product(const Int8MatMulArgs& g, const std::byte* packed, StripScratch& scratch)
        : g_(g),
          pairs_((g.k + 1) / 2),
          panels_(reinterpret_cast<const W*>(packed)),
          column_sums_(sums_of_pairs(packed, g.n, 1, g.k, sizeof(W))),
          scratch_(scratch) {}

    // Rows [first, last), columns [col, col_end).
    void run(size_t first, size_t last, size_t col, size_t col_end) {
        for_each_strip(first, last, pairs_, [&](size_t begin, size_t count) HWY_ATTR {
            scratch_.reserve(count, pairs_);
            if (g_.a.is_signed)
                widen_rows<int8_t>(g_, begin, count, pairs_ * 2, scratch_.rows.data());
            else
                widen_rows<uint8_t>(g_, begin, count, pairs_ * 2, scratch_.rows.data());
            for (size_t c = col; c < col_end; c += kPairPanel)
                panel(begin, count, c, std::min(kPairPanel, g_.n - c));
        });
    }

private:
    void panel(size_t first, size_t count, size_t col, size_t columns) {
        alignas(64) int32_t init[kPairPanel];
        alignas(64) float bias[kPairPanel] = {}, scale[kPairPanel] = {};
        for (size_t c = 0; c < kPairPanel; ++c)
            init[c] = static_cast<int32_t>(-static_cast<uint32_t>(g_.a_zero) *
                                           static_cast<uint32_t>(column_sums_[col + c]));
        PairTile tile{.init = init, .bias = bias, .scale = scale};
        tile.ldy = g_.n, tile.channels = columns;
        const W* matrix = panels_ + col * pairs_ * 2;
        const size_t at = first * g_.n + col;
        if (const auto* sums = std::get_if<int32_t*>(&g_.result)) {
            multiply_strip(tile, scratch_.rows.data(), scratch_.sums.data(), count, matrix, pairs_,
                           *sums + at);
        } else if (const auto* real = std::get_if<RealSums>(&g_.result)) {
            if (real->bias) std::copy_n(real->bias + col, columns, bias);
            for (size_t c = 0; c < columns; ++c) scale[c] = real->factor * real->scale[col + c];
            multiply_strip(tile, scratch_.rows.data(), scratch_.sums.data(), count, matrix, pairs_,
                           real->y + at);
            finish_panel(*real, count, columns, at);
        } else {
            const auto& bytes = std::get<Requantization>(g_.result);
            if (bytes.bias) std::copy_n(bytes.bias + col, columns, bias);
            std::copy_n(bytes.scale + col, columns, scale);
            const Rounder round(bytes);
            tile.round = &round;
            if (bytes.is_signed)
                multiply_strip(tile, scratch_.rows.data(), scratch_.sums.data(), count, matrix, pairs_,
                               static_cast<int8_t*>(bytes.y) + at);
            else
                multiply_strip(tile, scratch_.rows.data(), scratch_.sums.data(), count, matrix, pairs_,
                               static_cast<uint8_t*>(bytes.y) + at);
        }
    }

    // While the rows of the panel are in the L1 cache.
    void finish_panel(const RealSums& real, size_t count, size_t columns, size_t at) const {
        const Finish f{.activation = real.activation,
                       .residual = real.residual ? real.residual + at : nullptr,
                       .ldr = static_cast<ptrdiff_t>(g_.n)};
        if (f.needed()) finish(f, count, columns, real.y + at, static_cast<ptrdiff_t>(g_.n));
    }

    const Int8MatMulArgs& g_;
    size_t pairs_;
    const W* panels_;
    const int32_t* column_sums_;
    StripScratch& scratch_;
};

}  // namespace

void multiply_int8(const Int8MatMulArgs& g, const std::byte* packed, int ith, int nth) {
    static thread_local StripScratch scratch;
    const ConvShare share = conv_share({g.m, g.n, g.k}, ith, nth);
    if (share.out == share.out_end || share.pixel == share.pixel_end) return;
    const auto run = [&](auto product) {
        product.run(share.pixel, share.pixel_end, share.out, share.out_end);
    };
    g.is_wide ? run(Int8Product<int16_t>(g, packed, scratch)) : run(Int8Product<int8_t>(g, packed, scratch));
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(multiply_int8);

void int8_matmul(const Int8MatMulArgs& args, const std::byte* packed, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(multiply_int8)(args, packed, ith, nth);
}

}  // namespace headrace::kernels
#endif
