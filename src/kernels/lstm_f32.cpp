#include "kernels/lstm_f32.h"

#include <algorithm>
#include <vector>

#include "kernels/elementwise_f32.h"
#include "kernels/gemm_f32.h"

namespace headrace::kernels {
namespace {

// C[m][n] = A[m][k] · B[n][k]ᵀ.
void multiply_transposed(size_t m, size_t n, size_t k, const float* a, size_t lda, const float* b, float* c) {
    BatchedGemmArgs g;
    g.m = m, g.n = n, g.k = k;
    g.a = a, g.lda = static_cast<ptrdiff_t>(lda);
    g.b = b, g.ldb = static_cast<ptrdiff_t>(k), g.b_transposed = true;
    g.c = c, g.ldc = static_cast<ptrdiff_t>(n);
    batched_gemm_f32(g, 0, 1);
}

// Rows [row, row + rows) of the batch in one direction.
class Rows {
public:
    Rows(const LstmArgs& g, size_t direction, size_t row, size_t rows)
        : g_(g),
          direction_(direction),
          row_(row),
          rows_(rows),
          width_(4 * g.hidden),
          from_input_(g.steps * rows * width_),
          gates_(rows * width_),
          squashed_(g.hidden) {
        const size_t slot = direction * g.batch + row;
        hidden_ = start(g.hidden_state, slot), cell_ = start(g.cell_state, slot);
    }

    void run() {
        const float* weight = g_.weight + direction_ * width_ * g_.inputs;
        for (size_t t = 0; t < g_.steps; ++t)
            multiply_transposed(rows_, width_, g_.inputs, g_.x + (t * g_.batch + row_) * g_.inputs, g_.inputs,
                                weight, from_input_.data() + t * rows_ * width_);
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

    void step(size_t t) {
        const float* recurrent = g_.recurrent_weight + direction_ * width_ * g_.hidden;
        // Two rows at a time read the weights as they lie; more would have them transposed in every step.
        for (size_t r = 0; r < rows_; r += 2)
            multiply_transposed(std::min<size_t>(2, rows_ - r), width_, g_.hidden,
                                hidden_.data() + r * g_.hidden, g_.hidden, recurrent,
                                gates_.data() + r * width_);
        for (size_t r = 0; r < rows_; ++r) advance(t, r);
        if (!g_.sequence) return;
        const size_t place = (t * g_.directions + direction_) * g_.batch + row_;
        std::copy(hidden_.begin(), hidden_.end(), g_.sequence + place * g_.hidden);
    }

    void advance(size_t t, size_t r) {
        const size_t n = g_.hidden;
        float* gates = gates_.data() + r * width_;
        const float* input = from_input_.data() + (t * rows_ + r) * width_;
        const float* bias = g_.bias ? g_.bias + direction_ * width_ : nullptr;
        const float* more = g_.recurrent_bias ? g_.recurrent_bias + direction_ * width_ : nullptr;
        for (size_t j = 0; j < width_; ++j)
            gates[j] += input[j] + (bias ? bias[j] : 0.0f) + (more ? more[j] : 0.0f);
        for (size_t gate = 0; gate < 4; ++gate)
            unary_f32(gate == g_.candidate ? Unary::tanh : Unary::sigmoid, gates + gate * n, gates + gate * n,
                      n, 0, 1);
        float *cell = cell_.data() + r * n, *hidden = hidden_.data() + r * n;
        for (size_t j = 0; j < n; ++j)
            cell[j] = gates[g_.forget * n + j] * cell[j] + gates[j] * gates[g_.candidate * n + j];
        unary_f32(Unary::tanh, cell, squashed_.data(), n, 0, 1);
        for (size_t j = 0; j < n; ++j) hidden[j] = gates[g_.output * n + j] * squashed_[j];
    }

    const LstmArgs& g_;
    const size_t direction_, row_, rows_, width_;
    std::vector<float> from_input_, gates_, squashed_, hidden_, cell_;
};

}  // namespace

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
