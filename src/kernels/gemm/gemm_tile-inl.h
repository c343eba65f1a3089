// Register tiles and cache blocking shared by the GEMM-like kernels. Included once per SIMD target by
// their sources; each of them brings a source of B panels (packed, strided, image columns) and a
// rectangle of C to compute.
#if defined(HEADRACE_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_GEMM_TILE_INL_H_
#undef HEADRACE_KERNELS_GEMM_TILE_INL_H_
#else
#define HEADRACE_KERNELS_GEMM_TILE_INL_H_
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/gemm/gemm_epilogue-inl.h"
#include "kernels/gemm/gemm_f32.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Rows of B that a tile adds in one round. LLVM loads what all of them need before it adds, and V8, which
// takes that as the order, writes it to the stack.
#undef HEADRACE_UNROLL_DEPTH
#if HWY_TARGET == HWY_WASM
#define HEADRACE_UNROLL_DEPTH HWY_UNROLL(1)
#else
#define HEADRACE_UNROLL_DEPTH HWY_UNROLL(4)
#endif

// Vectors per tile row. With 32 registers 6 × 4 sums leave room for four vectors of B;
// with 16 registers, 6 × 2. V8 loads a row's elements of A for all of the tile first: there 4 × 2 sums fit.
inline constexpr bool kIsWebAssembly = HWY_TARGET == HWY_WASM;
inline constexpr size_t kRegisters = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON ? 32 : 16;
inline constexpr size_t kTileVecs = kRegisters == 32 ? 4 : 2;
// A single row needs no blocking over rows but wants whole lines of the panel at once: B is read only once.
inline constexpr size_t kRowVecs = std::min<size_t>(kPanelWidth / kLanes, 8);

// Rows of a tile whose rows hold `vecs` vectors: as many sums as the registers hold.
constexpr size_t tile_rows(size_t vecs) {
    if (vecs > kTileVecs) return 1;
    if (kRegisters == 16) return kIsWebAssembly ? 4 : 6;
    return vecs == 4 ? 6 : vecs == 3 ? 8 : 12;
}
inline constexpr size_t kMaxTileRows = 12;
// Rows of a convolution's tile: its rows are pixels and its columns output channels.
constexpr size_t tile_pixels(size_t vecs) {
    return vecs == kTileVecs || kIsWebAssembly ? tile_rows(vecs) : 8;
}

// Depth and height of the block of A that is to stay in the L2 cache while the panels of B pass by.
inline constexpr size_t kBlockDepth = 512;
inline constexpr size_t kBlockRows = 192;

// How elements of A are multiplied with vectors of B.
struct FloatRows {
    using Left = float;
    static HWY_INLINE TileVec broadcast(const float* from) { return hn::Set(TileTag(), *from); }
    static HWY_INLINE TileVec multiply_add(TileVec a, TileVec b, TileVec sum) {
        return hn::MulAdd(a, b, sum);
    }
};
// And how elements of B are read.
struct PlainColumns : FloatRows {
    using Element = float;
    static HWY_INLINE TileVec load(const float* from) { return hn::LoadU(TileTag(), from); }
};

// Elements of B in a cache line, and lines of what is read next that a tile of `vecs` vectors fetches with
// each row of B: two tiles bring all that they read of a panel.
template <class B>
inline constexpr size_t kLineElements = 64 / sizeof(typename B::Element);
template <class B>
constexpr size_t lines_ahead(size_t vecs) {
    return std::clamp<size_t>(vecs * kLanes / kLineElements<B> / 2, 1, 2);
}

// c[r][…] = init[r][…] + A[r][0..k) · B[0..k)[…] for kRows rows of kVecs vectors. If `ahead` is not null,
// brings lines_ahead() lines there and at the k - 1 rows after it up to the L2 cache. Without, it leaves all
// fetching to the processor: that reads a panel which is used once a quarter faster than with hints of ours.
template <class B, size_t kVecs, size_t kRows>
HWY_NOINLINE void tile(size_t k, const typename B::Left* HWY_RESTRICT a, ptrdiff_t lda,
                       const typename B::Element* HWY_RESTRICT b, ptrdiff_t ldb, const float* init,
                       ptrdiff_t init_stride, float* c, ptrdiff_t ldc, const typename B::Element* ahead,
                       ptrdiff_t ahead_stride) {
    const TileTag d;
    TileVec sum[kRows][kVecs];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) sum[r][v] = hn::LoadU(d, init + r * init_stride + v * kLanes);
    }
    const auto add_row = [&](size_t i) HWY_ATTR {
        decltype(B::load(b)) row[kVecs];
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) row[v] = B::load(b + v * kLanes);
        HWY_UNROLL(16)
        for (size_t r = 0; r < kRows; ++r) {
            const auto x = B::broadcast(a + r * lda + i);
            HWY_UNROLL(16)
            for (size_t v = 0; v < kVecs; ++v) sum[r][v] = B::multiply_add(x, row[v], sum[r][v]);
        }
    };
    if (ahead) {
        HEADRACE_UNROLL_DEPTH
        for (size_t i = 0; i < k; ++i, b += ldb, ahead += ahead_stride) {
            for (size_t line = 0; line < lines_ahead<B>(kVecs); ++line)
                __builtin_prefetch(ahead + line * kLineElements<B>, 0, 2);
            add_row(i);
        }
    } else {
        HEADRACE_UNROLL_DEPTH
        for (size_t i = 0; i < k; ++i, b += ldb) add_row(i);
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(16)
        for (size_t v = 0; v < kVecs; ++v) hn::StoreU(sum[r][v], d, c + r * ldc + v * kLanes);
    }
}

template <class B>
using TileFn = decltype(&tile<B, 1, 1>);

template <class B, size_t kVecs, size_t... kRows>
constexpr std::array<TileFn<B>, sizeof...(kRows)> make_tiles(std::index_sequence<kRows...>) {
    return {&tile<B, kVecs, kRows + 1>...};
}

// kTiles<B, vecs>[rows − 1] computes `rows` rows of `vecs` vectors.
template <class B, size_t kVecs>
constexpr auto kTiles = make_tiles<B, kVecs>(std::make_index_sequence<tile_rows(kVecs)>());

alignas(64) inline constexpr float kZeros[kPanelWidth] = {};

// Columns of a panel that are neighbours in a row of C, and where they lie in it.
struct Segment {
    size_t column, count;
    size_t offset;
};

// One panel of B times the rows of A, over a slice of depth: c (+)= A · B.
template <class B>
struct BasicPanelJob {
    using Element = typename B::Element;
    size_t rows, cols, depth;  // cols: those that exist, at most kPanelWidth
    const typename B::Left* a;
    ptrdiff_t lda;
    const Element* b;  // padded to whole vectors of columns
    ptrdiff_t ldb;
    const Element* next_b;  // what comes after it, to be fetched meanwhile; null: unknown
    ptrdiff_t next_ldb;
    float* c;
    ptrdiff_t ldc;
    const float* init;  // null: continue from c; else one row that every sum starts from, padded like b
    Finish finish;      // for this part of C; applied if this is the last slice of depth
    bool last;
    const Segment* segments;  // null: the columns lie in C one after the other
    size_t segment_count;
};
using PanelJob = BasicPanelJob<PlainColumns>;

// Calls fn(first, count, offset) for the runs of [col, col + cols) that are neighbours in a row of C.
template <class B, class Fn>
HWY_INLINE void for_each_segment(const BasicPanelJob<B>& job, size_t col, size_t cols, Fn fn) {
    if (!job.segments) return fn(col, cols, col);
    for (size_t i = 0; i < job.segment_count; ++i) {
        const Segment& s = job.segments[i];
        const size_t begin = std::max(s.column, col), end = std::min(s.column + s.count, col + cols);
        if (begin < end) fn(begin, end - begin, s.offset + (begin - s.column));
    }
}

// A tile that reaches beyond the last column or is scattered over C is computed beside it and copied.
template <class B, class Element = typename B::Element>
HWY_NOINLINE void edge_tile(const BasicPanelJob<B>& job, TileFn<B> fn, size_t rows, size_t col, size_t cols,
                            const typename B::Left* a, const Element* b, const float* init, float* c,
                            const Element* ahead) {
    alignas(64) float sums[kMaxTileRows * kPanelWidth];
    if (!init) {
        std::fill_n(sums, rows * kPanelWidth, 0.0f);
        for_each_segment(job, col, cols, [&](size_t first, size_t count, size_t offset) HWY_ATTR {
            for (size_t r = 0; r < rows; ++r)
                copy_strided(c + r * job.ldc + offset, 1, count, sums + r * kPanelWidth + (first - col));
        });
    }
    fn(job.depth, a, job.lda, b, job.ldb, init ? init : sums, init ? 0 : kPanelWidth, sums, kPanelWidth,
       ahead, job.next_ldb);
    for_each_segment(job, col, cols, [&](size_t first, size_t count, size_t offset) HWY_ATTR {
        for (size_t r = 0; r < rows; ++r)
            copy_strided(sums + r * kPanelWidth + (first - col), 1, count, c + r * job.ldc + offset);
    });
}

// All rows of a job for kVecs vectors of columns from `col`; rows are dealt out evenly, so no
// tile is a thin remainder.
template <size_t kVecs, class B>
HWY_INLINE void run_columns(const BasicPanelJob<B>& job, size_t col) {
    const size_t blocks = divide_up(job.rows, tile_rows(kVecs));
    const size_t cols = std::min(kVecs * kLanes, job.cols - col);
    const bool finishing = job.last && job.finish.needed();
    const auto* b = job.b + col;
    const float* init = job.init ? job.init + col : nullptr;
    for (size_t i = 0, row = 0; i < blocks; ++i) {
        const size_t next = (i + 1) * job.rows / blocks, rows = next - row;
        const TileFn<B> fn = kTiles<B, kVecs>[rows - 1];
        const auto* a = job.a + static_cast<ptrdiff_t>(row) * job.lda;
        float* c = job.c + static_cast<ptrdiff_t>(row) * job.ldc;
        // What comes next is fetched by several tiles, evenly, or memory would be idle in some of them.
        const size_t fetched = i * lines_ahead<B>(kVecs) * kLineElements<B>;
        const bool fetches = job.next_b && blocks > 1 && fetched < kVecs * kLanes;
        const auto* ahead = fetches ? job.next_b + col + fetched : nullptr;
        if (job.segments || cols < kVecs * kLanes) {
            edge_tile(job, fn, rows, col, cols, a, b, init, c, ahead);
        } else {
            fn(job.depth, a, job.lda, b, job.ldb, init ? init : c + col, init ? 0 : job.ldc, c + col, job.ldc,
               ahead, job.next_ldb);
        }
        if (finishing)
            for_each_segment(job, col, cols, [&](size_t, size_t count, size_t offset) HWY_ATTR {
                finish(job.finish.at(row, offset), rows, count, c + offset, job.ldc);
            });
        row = next;
    }
}

template <size_t kVecs, class B>
HWY_INLINE void run_columns_of(const BasicPanelJob<B>& job, size_t col, size_t vecs) {
    if constexpr (kVecs > 1) {
        if (vecs < kVecs) return run_columns_of<kVecs - 1>(job, col, vecs);
    }
    run_columns<kVecs>(job, col);
}

template <class B>
HWY_INLINE void run_panel(const BasicPanelJob<B>& job) {
    const size_t step = job.rows == 1 ? kRowVecs : kTileVecs;
    for (size_t col = 0; col < job.cols; col += step * kLanes) {
        const size_t vecs = std::min(step, divide_up(job.cols - col, kLanes));
        if (job.rows == 1)
            run_columns_of<kRowVecs>(job, col, vecs);
        else
            run_columns_of<kTileVecs>(job, col, vecs);
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_GEMM_TILE_INL_H_
