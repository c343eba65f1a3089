#include "kernels/tensor/gru_f32.h"

#include <algorithm>
#include <vector>

#include "kernels/gemm/gemm_f32.h"
#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/gru_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

// Calls f(j, count) for each vector of n values; the last one may have fewer than kLanes.
template <class F>
HWY_INLINE void each_vector(size_t n, F&& f) {
    for (size_t j = 0; j < n; j += kLanes) f(j, std::min(kLanes, n - j));
}

HWY_INLINE TileVec load_some(const float* p, size_t count) {
    const TileTag d;
    return count == kLanes ? hn::LoadU(d, p) : load_first(d, p, count);
}

// A gate from what the input gives it and what the state does.
HWY_INLINE TileVec gate(const float* input, const float* sums, size_t count) {
    return vec_sigmoid(TileTag(), hn::Add(load_some(input, count), load_some(sums, count)));
}

}  // namespace

// scaled = reset gate * hidden, of one row.
void reset_row(const GruArgs& g, const float* input, const float* sums, const float* hidden, float* scaled) {
    const size_t at = g.reset * g.hidden;
    each_vector(g.hidden, [&](size_t j, size_t count) HWY_ATTR {
        const TileVec reset = gate(input + at + j, sums + at + j, count);
        store_first(hn::Mul(reset, load_some(hidden + j, count)), TileTag(), scaled + j, count);
    });
}

// What the input's and the state's shares of a row's three gates make of its hidden state.
void advance_gru_row(const GruArgs& g, const float* input, const float* sums, float* hidden) {
    const TileTag d;
    const size_t update = g.update * g.hidden, reset = g.reset * g.hidden, fresh = 2 * g.hidden;
    each_vector(g.hidden, [&](size_t j, size_t count) HWY_ATTR {
        TileVec recurrent = load_some(sums + fresh + j, count);
        if (g.reset_after) recurrent = hn::Mul(gate(input + reset + j, sums + reset + j, count), recurrent);
        const TileVec next = vec_tanh(d, hn::Add(load_some(input + fresh + j, count), recurrent));
        const TileVec kept = gate(input + update + j, sums + update + j, count);
        const TileVec last = load_some(hidden + j, count);
        // As z * h + (1 - z) * n, so that an infinite state is not taken from itself.
        const TileVec share = hn::Mul(hn::Sub(hn::Set(d, 1.0f), kept), next);
        store_first(hn::MulAdd(kept, last, share), d, hidden + j, count);
    });
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {
namespace {

HWY_EXPORT(reset_row);
HWY_EXPORT(advance_gru_row);

constexpr size_t kGruGates = 3;

// Packed floats of the gates update and reset in one direction, which come before the new state's.
size_t packed_gates_floats(size_t hidden) { return packed_bytes(hidden, 2 * hidden) / sizeof(float); }

class Gru {
public:
    Gru(const GruArgs& g, size_t direction, size_t row, size_t rows)
        : state(g, direction, row, rows),
          g_(g),
          width_(kGruGates * g.hidden),
          sums_(rows * width_),
          scaled_(g.reset_after ? 0 : rows * g.hidden),
          recurrent_(state.packed(&pack_gru_recurrent, kGruGates, packed_gru_recurrent_bytes(1, g.hidden))),
          bias_(g.recurrent_bias ? g.recurrent_bias + direction * width_ : nullptr) {}

    void step(size_t t) {
        const float* input = state.input(t, kGruGates);
        const size_t stride = state.input_stride(kGruGates), n = g_.hidden;
        multiply(state.hidden, 0, 2 * n, recurrent_);
        for (size_t r = 0; r < state.rows && !g_.reset_after; ++r) HWY_DYNAMIC_DISPATCH(reset_row)
        (g_, input + r * stride, sums_.data() + r * width_, state.hidden.data() + r * n,
         scaled_.data() + r * n);
        multiply(g_.reset_after ? state.hidden : scaled_, 2 * n, n, recurrent_ + packed_gates_floats(n));
        for (size_t r = 0; r < state.rows; ++r) HWY_DYNAMIC_DISPATCH(advance_gru_row)
        (g_, input + r * stride, sums_.data() + r * width_, state.hidden.data() + r * n);
    }
    void finish() const { state.store(state.hidden, g_.last_hidden); }

    RecurrentRows state;

private:
    // The sums of `count` values from `first` on: rows · weights + bias.
    void multiply(const std::vector<float>& rows, size_t first, size_t count, const float* weights) {
        GemmArgs product;
        product.m = state.rows, product.n = count, product.k = g_.hidden;
        product.a = rows.data(), product.lda = static_cast<ptrdiff_t>(g_.hidden);
        product.packed_b = weights;
        product.c = sums_.data() + first, product.ldc = static_cast<ptrdiff_t>(width_);
        product.bias = bias_ ? bias_ + first : nullptr;
        gemm_f32(product, 0, 1);
    }

    const GruArgs& g_;
    const size_t width_;
    std::vector<float> sums_, scaled_;
    const float *recurrent_, *bias_;
};

}  // namespace

size_t packed_gru_recurrent_bytes(size_t directions, size_t hidden) {
    return directions * (packed_bytes(hidden, 2 * hidden) + packed_bytes(hidden, hidden));
}

void pack_gru_recurrent(const float* weight, size_t directions, size_t hidden, float* packed) {
    const auto stride = static_cast<ptrdiff_t>(hidden);
    for (size_t direction = 0; direction < directions; ++direction) {
        pack(weight, 1, stride, hidden, 2 * hidden, packed);
        pack(weight + 2 * hidden * hidden, 1, stride, hidden, hidden, packed + packed_gates_floats(hidden));
        weight += kGruGates * hidden * hidden;
        packed += packed_gru_recurrent_bytes(1, hidden) / sizeof(float);
    }
}

void gru_f32(const GruArgs& g, int ith, int nth) { walk_rows<Gru>(g, ith, nth); }

}  // namespace headrace::kernels
#endif
