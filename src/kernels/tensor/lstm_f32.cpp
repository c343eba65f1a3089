#include "kernels/tensor/lstm_f32.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/lstm_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// The same for all lanes of a vector: of the cell, the new one and the state.
HWY_INLINE std::pair<TileVec, TileVec> next_states(TileVec input, TileVec output, TileVec forget,
                                                   TileVec candidate, TileVec cell) {
    const TileTag d;
    const TileVec next =
        hn::MulAdd(vec_sigmoid(d, forget), cell, hn::Mul(vec_sigmoid(d, input), vec_tanh(d, candidate)));
    return {next, hn::Mul(vec_sigmoid(d, output), vec_tanh(d, next))};
}

}  // namespace

// What the sums of a row's four gates make of its cell and hidden state.
void advance_row(const LstmArgs& g, const float* gates, float* cell, float* hidden) {
    const TileTag d;
    const size_t n = g.hidden;
    for (size_t j = 0; j < n; j += kLanes) {
        const size_t count = std::min(kLanes, n - j);
        const auto load = [&](const float* p) HWY_ATTR {
            return count == kLanes ? hn::LoadU(d, p + j) : load_first(d, p + j, count);
        };
        const auto [next, state] =
            next_states(load(gates), load(gates + g.output * n), load(gates + g.forget * n),
                        load(gates + g.candidate * n), load(cell));
        store_first(next, d, cell + j, count);
        store_first(state, d, hidden + j, count);
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {
namespace {

HWY_EXPORT(advance_row);

// Of one direction.
size_t packed_floats(size_t hidden) { return packed_bytes(hidden, 4 * hidden) / sizeof(float); }

// Rows [row, row + rows) of the batch in one direction.
class Rows {
public:
    Rows(const LstmArgs& g, size_t direction, size_t row, size_t rows)
        : g_(g), direction_(direction), row_(row), rows_(rows), width_(4 * g.hidden), gates_(rows * width_) {
        const size_t slot = direction * g.batch + row;
        hidden_ = start(g.hidden_state, slot), cell_ = start(g.cell_state, slot);
        recurrent_ =
            g.packed_recurrent ? g.packed_recurrent + direction * packed_floats(g.hidden) : pack_here();
    }

    void run() {
        const bool backward = direction_ == 1 || g_.backward;
        for (size_t i = 0; i < g_.steps; ++i) step(backward ? g_.steps - 1 - i : i);
        const size_t slot = direction_ * g_.batch + row_;
        std::copy(hidden_.begin(), hidden_.end(), g_.last_hidden + slot * g_.hidden);
        std::copy(cell_.begin(), cell_.end(), g_.last_cell + slot * g_.hidden);
    }

private:
    std::vector<float> start(const float* state, size_t slot) const {
        std::vector<float> rows(rows_ * g_.hidden);
        if (state) std::copy_n(state + slot * g_.hidden, rows.size(), rows.begin());
        return rows;
    }

    const float* pack_here() {
        auto made = AlignedBuffer::allocate(packed_recurrent_bytes(1, g_.hidden), "recurrent weights");
        if (!made.ok()) throw std::bad_alloc();
        packed_here_ = std::move(made).value();
        float* packed = reinterpret_cast<float*>(packed_here_.data());
        pack_recurrent(g_.recurrent_weight + direction_ * width_ * g_.hidden, 1, g_.hidden, packed);
        return packed;
    }

    void step(size_t t) {
        GemmArgs product;
        product.m = rows_, product.n = width_, product.k = g_.hidden;
        product.a = hidden_.data(), product.lda = static_cast<ptrdiff_t>(g_.hidden);
        product.packed_b = recurrent_;
        product.c = gates_.data(), product.ldc = static_cast<ptrdiff_t>(width_);
        product.residual = g_.gate_input + ((t * g_.batch + row_) * g_.directions + direction_) * width_;
        product.ldr = static_cast<ptrdiff_t>(g_.directions * width_);
        gemm_f32(product, 0, 1);
        for (size_t r = 0; r < rows_; ++r) HWY_DYNAMIC_DISPATCH(advance_row)
        (g_, gates_.data() + r * width_, cell_.data() + r * g_.hidden, hidden_.data() + r * g_.hidden);
        if (!g_.sequence) return;
        const size_t place = (t * g_.directions + direction_) * g_.batch + row_;
        std::copy(hidden_.begin(), hidden_.end(), g_.sequence + place * g_.hidden);
    }

    const LstmArgs& g_;
    const size_t direction_, row_, rows_, width_;
    std::vector<float> gates_, hidden_, cell_;
    AlignedBuffer packed_here_;
    const float* recurrent_;
};

}  // namespace

size_t packed_recurrent_bytes(size_t directions, size_t hidden) {
    return directions * packed_bytes(hidden, 4 * hidden);
}

void pack_recurrent(const float* weight, size_t directions, size_t hidden, float* packed) {
    for (size_t direction = 0; direction < directions; ++direction)
        pack(weight + direction * 4 * hidden * hidden, 1, static_cast<ptrdiff_t>(hidden), hidden, 4 * hidden,
             packed + direction * packed_floats(hidden));
}

void lstm_f32(const LstmArgs& g, int ith, int nth) {
    const size_t slots = g.directions * g.batch, end = slots * (ith + 1) / nth;
    for (size_t slot = slots * ith / nth; slot < end;) {
        const size_t direction = slot / g.batch, row = slot % g.batch;
        const size_t rows = std::min(g.batch - row, end - slot);
        Rows(g, direction, row, rows).run();
        slot += rows;
    }
}

}  // namespace headrace::kernels
#endif
