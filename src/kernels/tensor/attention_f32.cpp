#include "kernels/tensor/attention_f32.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

#include "base/aligned_buffer.h"
#include "kernels/gemm/bf16_gemm_f32.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/tensor/decode_attention.h"
#include "kernels/tensor/normalize_f32.h"

namespace headrace::kernels {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Rows of queries whose scores are computed at a time: few enough for the scores to stay in the nearest
// cache, and enough of them to pay for reading the packed keys of long sequences from farther away.
constexpr size_t kBlockRows = 48;
// From so many queries on, keys and values are packed; for fewer it takes longer than reading them as they
// lie.
constexpr size_t kPackedQueries = 3;

struct Block {
    size_t batch, head, kv_head, row, rows;
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

// One head's keys and values, as far as they were asked for, in the order of packed matrices.
class PackedHead {
public:
    explicit PackedHead(const AttentionArgs& g, float* keys, float* values)
        : g_(g), keys_(keys), values_(values) {}

    // Floats that the rows of a packed matrix take in each column: pairs of bf16 take as much.
    static size_t rows(const AttentionArgs& g, size_t count) {
        return g.round_to_bf16 ? (count + 1) / 2 : count;
    }
    static size_t floats_of_keys(const AttentionArgs& g) { return packed_width(g.n) * rows(g, g.width); }
    static size_t floats_of_values(const AttentionArgs& g) { return rows(g, g.n) * packed_width(g.width_v); }

    void choose(size_t batch, size_t head) {
        if (batch == batch_ && head == head_) return;
        batch_ = batch, head_ = head, count_ = 0;
    }
    void pack_first(size_t count) {
        // A pair must not hold a value that is not wanted: what it is multiplied with, 0, may make NaN of it.
        if (g_.round_to_bf16 && count < count_ && count % 2) {
            pack_pairs_of_values(count - 1, count);
            count_ = count;
        }
        if (count <= count_) return;
        const size_t first = count_ / kPanelWidth * kPanelWidth;  // the last panel is as wide as it has keys
        const float* from = matrix_of(g_.k, batch_, head_) + static_cast<ptrdiff_t>(first) * g_.k.row;
        float* to = keys_ + first * rows(g_, g_.width);
        if (g_.round_to_bf16) {
            pack_as_bf16(from, 1, g_.k.row, g_.width, count - first, reinterpret_cast<uint16_t*>(to));
            pack_pairs_of_values(count_ / 2 * 2, count);
        } else {
            pack(from, 1, g_.k.row, g_.width, count - first, to);
            for (size_t row = count_; row < count; ++row) pack_value(row);
        }
        count_ = count;
    }
    const float* keys() const { return keys_; }
    // Keys that scores are computed for where the first `count` are wanted: whole panels, or all.
    size_t computed_keys(size_t count) const {
        return std::min(packed_width(count_), (count + kPanelWidth - 1) / kPanelWidth * kPanelWidth);
    }
    // The values' columns from `col` on.
    const float* values(size_t col) const { return values_ + col * rows(g_, g_.n); }

private:
    void pack_value(size_t row) {
        const float* from = matrix_of(g_.v, batch_, head_) + static_cast<ptrdiff_t>(row) * g_.v.row;
        for (size_t col = 0; col < g_.width_v; col += kPanelWidth) {
            const size_t cols = std::min(kPanelWidth, g_.width_v - col), width = packed_width(cols);
            float* to = values_ + col * g_.n + row * width;
            std::copy_n(from + col, cols, to);
            std::fill(to + cols, to + width, 0.0f);
        }
    }

    // Rows [first, end), of which the first is even.
    void pack_pairs_of_values(size_t first, size_t end) {
        const float* from = matrix_of(g_.v, batch_, head_) + static_cast<ptrdiff_t>(first) * g_.v.row;
        for (size_t col = 0; col < g_.width_v; col += kPanelWidth) {
            const size_t cols = std::min(kPanelWidth, g_.width_v - col);
            float* to = values_ + col * rows(g_, g_.n) + first / 2 * packed_width(cols);
            pack_as_bf16(from + col, g_.v.row, 1, end - first, cols, reinterpret_cast<uint16_t*>(to));
        }
    }

    const AttentionArgs& g_;
    float *keys_, *values_;
    size_t batch_ = 0, head_ = 0, count_ = 0;
};

// What a thread computes with. Rows of scores and masks are `stride` floats apart.
struct Workspace {
    size_t stride;
    float *scores, *masks, *sums;
    PackedHead head;
};

bool is_packed(const AttentionArgs& g) { return g.m >= kPackedQueries; }

// Weights of each row's keys, yet to be divided by their sum. Masks are copied only where the kernel cannot
// read them as they are.
void softmax(const AttentionArgs& g, const Block& block, const Workspace& work) {
    SoftmaxArgs s;
    s.rows = block.rows, s.n = block.keys, s.scale = g.scale;
    s.x = s.y = work.scores, s.x_stride = s.y_stride = static_cast<ptrdiff_t>(work.stride);
    s.sums = work.sums;
    if (g.mask && g.mask_column == 1 && !g.causal) {
        s.mask = g.mask + mask_start(g, block, block.row), s.mask_stride = g.mask_row;
    } else if (g.mask) {
        const bool is_one_row = g.mask_row == 0 && !g.causal;
        for (size_t i = 0; i < (is_one_row ? 1 : block.rows); ++i)
            fill_mask(g, block, block.row + i, work.masks + i * work.stride);
        s.mask = work.masks, s.mask_stride = is_one_row ? 0 : s.x_stride;
    } else if (g.causal) {
        s.rows = 1;
        for (size_t i = 0; i < block.rows; ++i, ++s.sums, s.x += s.x_stride, s.y += s.y_stride) {
            s.n = std::min(block.keys, block.row + i + 1);
            softmax_f32(s, 0, 1);
            std::fill(s.y + s.n, s.y + block.keys, 0.0f);
        }
        return;
    }
    softmax_f32(s, 0, 1);
}

// packed_b may be in bf16.
void multiply(const AttentionArgs& g, const GemmArgs& a) {
    if (g.round_to_bf16)
        bf16_gemm_f32(a, reinterpret_cast<const uint16_t*>(a.packed_b), 0, 1);
    else
        gemm_f32(a, 0, 1);
}

void multiply_queries(const AttentionArgs& g, const Block& block, Workspace& work) {
    const float* q = matrix_of(g.q, block.batch, block.head) + static_cast<ptrdiff_t>(block.row) * g.q.row;
    if (is_packed(g)) {
        work.head.pack_first(block.keys);
        GemmArgs a;
        a.m = block.rows, a.n = work.head.computed_keys(block.keys), a.k = g.width;
        a.a = q, a.lda = g.q.row, a.packed_b = work.head.keys();
        a.c = work.scores, a.ldc = static_cast<ptrdiff_t>(work.stride);
        return multiply(g, a);
    }
    BatchedGemmArgs a;
    a.m = block.rows, a.n = block.keys, a.k = g.width;
    a.a = q, a.lda = g.q.row;
    a.b = matrix_of(g.k, block.batch, block.kv_head), a.ldb = g.k.row, a.b_transposed = true;
    a.c = work.scores, a.ldc = static_cast<ptrdiff_t>(work.stride);
    batched_gemm_f32(a, 0, 1);
}

void multiply_values(const AttentionArgs& g, const Block& block, const Workspace& work, float* o) {
    if (!is_packed(g)) {
        BatchedGemmArgs a;
        a.m = block.rows, a.n = g.width_v, a.k = block.keys;
        a.a = work.scores, a.lda = static_cast<ptrdiff_t>(work.stride);
        a.b = matrix_of(g.v, block.batch, block.kv_head), a.ldb = g.v.row;
        a.c = o, a.ldc = g.o_row;
        return batched_gemm_f32(a, 0, 1);
    }
    for (size_t col = 0; col < g.width_v; col += kPanelWidth) {
        GemmArgs a;
        a.m = block.rows, a.n = std::min(kPanelWidth, g.width_v - col), a.k = block.keys;
        a.a = work.scores, a.lda = static_cast<ptrdiff_t>(work.stride), a.packed_b = work.head.values(col);
        a.c = o + col, a.ldc = g.o_row;
        multiply(g, a);
    }
}

void run_block(const AttentionArgs& g, const Block& block, Workspace& work) {
    multiply_queries(g, block, work);
    softmax(g, block, work);
    float* o = g.o + static_cast<ptrdiff_t>(block.batch) * g.o_batch +
               static_cast<ptrdiff_t>(block.head) * g.o_head + static_cast<ptrdiff_t>(block.row) * g.o_row;
    multiply_values(g, block, work, o);
    for (size_t i = 0; i < block.rows; ++i, o += g.o_row) {
        const float sum = work.sums[i];  // 0: every key is masked, or there is none
        const float factor = sum == 0 && (g.zero_if_masked || g.n == 0) ? 0 : 1 / sum;
        for (size_t j = 0; j < g.width_v; ++j) o[j] *= factor;
    }
}

// Few queries over what other calls have left in a cache. The number of threads has no say, as hidden keys
// that are not finite are not read there, and make NaN here.
bool reads_cache(const AttentionArgs& g) {
    return g.m < kPackedQueries && !g.causal && g.zero_if_masked && g.n > 0 &&
           (!g.mask || (g.mask_column == 1 && g.mask_head == 0)) &&
           has_cached_attention<float>(g.width, g.width_v);
}

void attend_to_cache(const AttentionArgs& g, size_t batch, int ith, int nth) {
    DecodeAttentionArgs<float> c;
    c.tokens = g.m, c.heads = g.heads, c.kv_heads = g.kv_heads, c.keys = g.n;
    c.width = g.width, c.width_v = g.width_v, c.scale = g.scale;
    c.q = matrix_of(g.q, batch, 0), c.q_token = g.q.row, c.q_head = g.q.head;
    c.k = matrix_of(g.k, batch, 0), c.k_row = g.k.row, c.k_head = g.k.head;
    c.v = matrix_of(g.v, batch, 0), c.v_row = g.v.row, c.v_head = g.v.head;
    if (g.mask) c.mask = g.mask + static_cast<ptrdiff_t>(batch) * g.mask_batch, c.mask_token = g.mask_row;
    c.o = g.o + static_cast<ptrdiff_t>(batch) * g.o_batch, c.o_token = g.o_row, c.o_head = g.o_head;
    decode_attention(c, ith, nth);
}

}  // namespace

void attention_f32(const AttentionArgs& g, int ith, int nth) {
    if (reads_cache(g)) {
        for (size_t batch = 0; batch < g.batch; ++batch) attend_to_cache(g, batch, ith, nth);
        return;
    }
    const size_t blocks = (g.m + kBlockRows - 1) / kBlockRows, tasks = g.batch * g.heads * blocks;
    const size_t begin = tasks * ith / nth, end = tasks * (ith + 1) / nth;
    if (begin == end || g.width_v == 0) return;
    const size_t stride = packed_width(g.n), size = std::min(kBlockRows, g.m) * stride;
    const size_t keys = is_packed(g) ? PackedHead::floats_of_keys(g) : 0;
    const size_t values = is_packed(g) ? PackedHead::floats_of_values(g) : 0;
    auto memory = AlignedBuffer::allocate(
        (keys + values + size * (g.mask ? 2 : 1) + kBlockRows) * sizeof(float), "attention");
    if (!memory.ok()) throw std::bad_alloc();
    float* first = reinterpret_cast<float*>(memory.value().data());
    float* scores = first + keys + values;
    Workspace work{.stride = stride,
                   .scores = scores,
                   .masks = scores + size,
                   .sums = scores + size * (g.mask ? 2 : 1),
                   .head = PackedHead(g, first, first + keys)};
    for (size_t task = begin; task < end; ++task) {
        Block block{.batch = task / blocks / g.heads, .head = task / blocks % g.heads};
        block.kv_head = block.head / (g.heads / g.kv_heads);
        block.row = task % blocks * kBlockRows;
        block.rows = std::min(kBlockRows, g.m - block.row);
        block.keys = g.causal ? std::min(g.n, block.row + block.rows) : g.n;
        if (g.mask) block.keys = visible_keys(g, block);
        work.head.choose(block.batch, block.kv_head);
        run_block(g, block, work);
    }
}

}  // namespace headrace::kernels
