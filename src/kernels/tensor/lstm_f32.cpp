#include "kernels/tensor/lstm_f32.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/gemm/bf16_gemm_f32.h"
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

constexpr size_t kLstmGates = 4;

class Lstm {
public:
    Lstm(const LstmArgs& g, size_t direction, size_t row, size_t rows)
        : state(g, direction, row, rows),
          g_(g),
          width_(kLstmGates * g.hidden),
          cell_(state.start(g.cell_state)),
          gates_(rows * width_),
          recurrent_(state.packed(&pack_lstm_recurrent, kLstmGates,
                                  g.round_to_bf16 ? packed_lstm_bf16_bytes(1, g.hidden)
                                                  : packed_lstm_recurrent_bytes(1, g.hidden))) {}

    void step(size_t t) {
        GemmArgs product;
        product.m = state.rows, product.n = width_, product.k = g_.hidden;
        product.a = state.hidden.data(), product.lda = static_cast<ptrdiff_t>(g_.hidden);
        product.packed_b = recurrent_;
        product.c = gates_.data(), product.ldc = static_cast<ptrdiff_t>(width_);
        product.residual = state.input(t, kLstmGates);
        product.ldr = static_cast<ptrdiff_t>(state.input_stride(kLstmGates));
        if (g_.round_to_bf16)
            bf16_gemm_f32(product, reinterpret_cast<const uint16_t*>(recurrent_), 0, 1);
        else
            gemm_f32(product, 0, 1);
        for (size_t r = 0; r < state.rows; ++r) HWY_DYNAMIC_DISPATCH(advance_row)
        (g_, gates_.data() + r * width_, cell_.data() + r * g_.hidden, state.hidden.data() + r * g_.hidden);
    }
    void finish() const {
        state.store(state.hidden, g_.last_hidden);
        state.store(cell_, g_.last_cell);
    }

    RecurrentRows state;

private:
    const LstmArgs& g_;
    const size_t width_;
    std::vector<float> cell_, gates_;
    const float* recurrent_;
};

}  // namespace

size_t packed_lstm_recurrent_bytes(size_t directions, size_t hidden) {
    return directions * packed_bytes(hidden, kLstmGates * hidden);
}

void pack_lstm_recurrent(const float* weight, size_t directions, size_t hidden, float* packed) {
    const size_t rows = kLstmGates * hidden, floats = packed_bytes(hidden, rows) / sizeof(float);
    for (size_t direction = 0; direction < directions; ++direction)
        pack(weight + direction * rows * hidden, 1, static_cast<ptrdiff_t>(hidden), hidden, rows,
             packed + direction * floats);
}

size_t packed_lstm_bf16_bytes(size_t directions, size_t hidden) {
    return directions * packed_bf16_bytes(hidden, kLstmGates * hidden);
}

void pack_lstm_bf16(const float* weight, size_t directions, size_t hidden, uint16_t* packed) {
    const size_t rows = kLstmGates * hidden;
    for (size_t direction = 0; direction < directions; ++direction)
        pack_as_bf16(weight + direction * rows * hidden, 1, static_cast<ptrdiff_t>(hidden), hidden, rows,
                     packed + direction * packed_bf16_bytes(hidden, rows) / sizeof(*packed));
}

void lstm_f32(const LstmArgs& g, int ith, int nth) { walk_rows<Lstm>(g, ith, nth); }

}  // namespace headrace::kernels
#endif
