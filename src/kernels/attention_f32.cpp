#include "kernels/attention_f32.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/gemm_f32.h"
#include "kernels/normalize_f32.h"

namespace headrace::kernels {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Rows of queries whose scores are computed at a time: enough to spread the cost of packing the keys, few
// enough for the scores to stay in the cache.
constexpr size_t kBlockRows = 64;

struct Block {
    size_t batch, head, row, rows;
    size_t keys;  // later ones are masked for all rows
};

const float* matrix_of(const AttentionArgs::Matrix& m, size_t batch, size_t head) {
    return m.data + static_cast<ptrdiff_t>(batch) * m.batch + static_cast<ptrdiff_t>(head) * m.head;
}

ptrdiff_t mask_start(const AttentionArgs& g, const Block& block, size_t row) {
    return static_cast<ptrdiff_t>(block.batch) * g.mask_batch +
           static_cast<ptrdiff_t>(block.head) * g.mask_head + static_cast<ptrdiff_t>(row) * g.mask_row;
}

// Whether `count` values that lie one after the other all hide their key; compilers make vector instructions
// of it.
bool all_masked(const float* mask, size_t count) {
    int shown = 0;
    for (size_t j = 0; j < count; ++j) shown |= mask[j] != kMasked;
    return shown == 0;
}

// Keys of a block without those at the end that its mask hides from all its rows: caches are longer than what
// they hold. All of them where none is left, for softmax to say what that means.
size_t visible_keys(const AttentionArgs& g, const Block& block) {
    if (g.mask_column != 1) return block.keys;
    constexpr size_t kStep = 64;
    size_t visible = 0;
    const size_t rows = g.mask_row == 0 ? 1 : block.rows;
    for (size_t i = rows; i-- > 0;) {
        const float* mask = g.mask + mask_start(g, block, block.row + i);
        size_t last = block.keys;
        while (last >= visible + kStep && all_masked(mask + last - kStep, kStep)) last -= kStep;
        while (last > visible && mask[last - 1] == kMasked) --last;
        visible = std::max(visible, last);
    }
    return visible == 0 ? block.keys : visible;
}

// One query's row of mask values, and what of it the causal mask leaves.
void fill_mask(const AttentionArgs& g, const Block& block, size_t row, float* mask) {
    const ptrdiff_t start = mask_start(g, block, row), step = g.mask_column;
    const size_t seen = g.causal ? std::min(block.keys, row + 1) : block.keys;
    for (size_t j = 0; j < seen; ++j) mask[j] = g.mask[start + static_cast<ptrdiff_t>(j) * step];
    std::fill(mask + seen, mask + block.keys, kMasked);
}

// Softmax of scores that the mask is added to; rows without any key become 0 where that is wanted. Masks are
// copied only where the kernel cannot read them as they are.
void masked_softmax(const AttentionArgs& g, const Block& block, float* scores, float* masks) {
    const ptrdiff_t keys = static_cast<ptrdiff_t>(block.keys);
    SoftmaxArgs s;
    s.rows = block.rows, s.n = block.keys;
    s.x = scores, s.x_stride = keys, s.y = scores, s.y_stride = keys;
    if (g.mask_column == 1 && !g.causal) {
        s.mask = g.mask + mask_start(g, block, block.row), s.mask_stride = g.mask_row;
    } else {
        const bool is_one_row = g.mask_row == 0 && !g.causal;
        for (size_t i = 0; i < (is_one_row ? 1 : block.rows); ++i)
            fill_mask(g, block, block.row + i, masks + i * block.keys);
        s.mask = masks, s.mask_stride = is_one_row ? 0 : keys;
    }
    softmax_f32(s, 0, 1);
    for (size_t i = 0; g.zero_if_masked && i < block.rows; ++i) {
        const float* mask = s.mask + static_cast<ptrdiff_t>(i) * s.mask_stride;
        if (all_masked(mask, block.keys)) std::fill_n(scores + static_cast<ptrdiff_t>(i) * keys, keys, 0.0f);
    }
}

// Softmax of each row's keys up to its own, or of all.
void plain_softmax(const AttentionArgs& g, const Block& block, float* scores) {
    const ptrdiff_t keys = static_cast<ptrdiff_t>(block.keys);
    SoftmaxArgs s;
    s.rows = block.rows, s.n = block.keys;
    s.x = scores, s.x_stride = keys, s.y = scores, s.y_stride = keys;
    if (!g.causal) return softmax_f32(s, 0, 1);
    s.rows = 1;
    for (size_t i = 0; i < block.rows; ++i, s.x += keys, s.y += keys) {
        s.n = std::min(block.keys, block.row + i + 1);
        softmax_f32(s, 0, 1);
        std::fill(s.y + s.n, s.y + keys, 0.0f);
    }
}

void multiply(size_t m, size_t n, size_t k, const float* a, ptrdiff_t lda, const float* b, ptrdiff_t ldb,
              bool b_transposed, float* c, ptrdiff_t ldc, float scale) {
    BatchedGemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.lda = lda, g.b = b, g.ldb = ldb, g.b_transposed = b_transposed;
    g.c = c, g.ldc = ldc, g.scale = scale;
    batched_gemm_f32(g, 0, 1);
}

// scores and masks: rows × n each.
void run_block(const AttentionArgs& g, const Block& block, float* scores, float* masks) {
    const size_t kv_head = block.head / (g.heads / g.kv_heads);
    const ptrdiff_t row = static_cast<ptrdiff_t>(block.row), keys = static_cast<ptrdiff_t>(block.keys);
    multiply(block.rows, block.keys, g.width, matrix_of(g.q, block.batch, block.head) + row * g.q.row,
             g.q.row, matrix_of(g.k, block.batch, kv_head), g.k.row, true, scores, keys, g.scale);
    if (g.mask)
        masked_softmax(g, block, scores, masks);
    else
        plain_softmax(g, block, scores);
    float* o = g.o + static_cast<ptrdiff_t>(block.batch) * g.o_batch +
               static_cast<ptrdiff_t>(block.head) * g.o_head + row * g.o_row;
    multiply(block.rows, g.width_v, block.keys, scores, keys, matrix_of(g.v, block.batch, kv_head), g.v.row,
             false, o, g.o_row, 1);
}

}  // namespace

void attention_f32(const AttentionArgs& g, int ith, int nth) {
    const size_t blocks = (g.m + kBlockRows - 1) / kBlockRows, tasks = g.batch * g.heads * blocks;
    const size_t begin = tasks * ith / nth, end = tasks * (ith + 1) / nth;
    if (begin == end || g.width_v == 0) return;
    const size_t size = std::min(kBlockRows, g.m) * g.n;
    std::vector<float> scratch(size * (g.mask ? 2 : 1));
    for (size_t task = begin; task < end; ++task) {
        Block block{.batch = task / blocks / g.heads, .head = task / blocks % g.heads};
        block.row = task % blocks * kBlockRows;
        block.rows = std::min(kBlockRows, g.m - block.row);
        block.keys = g.causal ? std::min(g.n, block.row + block.rows) : g.n;
        if (g.mask) block.keys = visible_keys(g, block);
        run_block(g, block, scratch.data(), g.mask ? scratch.data() + size : nullptr);
    }
}

}  // namespace headrace::kernels
