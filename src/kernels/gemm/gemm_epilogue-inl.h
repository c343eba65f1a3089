// What follows the sums of a matrix product or convolution: scale, bias of a row, activation, residual.
// Included once per SIMD target.
#if defined(HEADRACE_KERNELS_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADRACE_KERNELS_GEMM_EPILOGUE_INL_H_
#undef HEADRACE_KERNELS_GEMM_EPILOGUE_INL_H_
#else
#define HEADRACE_KERNELS_GEMM_EPILOGUE_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// What becomes of a finished sum s in row r: activation(s * scale + row_bias[r]) + residual[r], or with
// residual_first activation(s * scale + row_bias[r] + residual[r]). Biases of columns are not here: the sums
// start from them.
struct Finish {
    float scale = 1;
    const float* row_bias = nullptr;
    Activation activation = Activation::none;
    float clamp_min = 0, clamp_max = 0;
    const float* residual = nullptr;
    bool residual_first = false;
    ptrdiff_t ldr = 0;

    bool needed() const { return scale != 1 || row_bias || residual || activation != Activation::none; }

    // The same for the part of C that begins at `row` and `col`.
    Finish at(size_t row, size_t col) const {
        Finish part = *this;
        if (row_bias) part.row_bias += row;
        if (residual) part.residual += static_cast<ptrdiff_t>(row) * ldr + static_cast<ptrdiff_t>(col);
        return part;
    }
};

// For all of C.
HWY_INLINE HWY_MAYBE_UNUSED Finish finish_of(const GemmArgs& g) {
    return {.activation = g.activation,
            .clamp_min = g.clamp_min,
            .clamp_max = g.clamp_max,
            .residual = g.residual,
            .ldr = g.ldr};
}

template <class Fn>
HWY_INLINE void finish_with(const Finish& f, size_t rows, size_t cols, float* c, ptrdiff_t ldc, Fn fn) {
    const TileTag d;
    const TileVec scale = hn::Set(d, f.scale);
    for (size_t r = 0; r < rows; ++r) {
        const TileVec bias = hn::Set(d, f.row_bias ? f.row_bias[r] : 0.0f);
        float* row = c + static_cast<ptrdiff_t>(r) * ldc;
        const float* residual = f.residual ? f.residual + static_cast<ptrdiff_t>(r) * f.ldr : nullptr;
        const auto finished = [&](TileVec sum, auto load) HWY_ATTR {
            TileVec x = hn::MulAdd(sum, scale, bias);
            if (residual && f.residual_first) x = hn::Add(x, load(residual));
            x = fn(d, x);
            return residual && !f.residual_first ? hn::Add(x, load(residual)) : x;
        };
        size_t j = 0;
        for (; j + kLanes <= cols; j += kLanes) {
            const auto load = [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + j); };
            hn::StoreU(finished(load(row), load), d, row + j);
        }
        if (j < cols) {
            const auto load = [&](const float* p) HWY_ATTR { return load_first(d, p + j, cols - j); };
            store_first(finished(load(row), load), d, row + j, cols - j);
        }
    }
}

struct None {
    template <class D, class V>
    HWY_INLINE V operator()(D, V x) const {
        return x;
    }
};
struct Clamp {
    float low, high;
    template <class D, class V>
    HWY_INLINE V operator()(D d, V x) const {
        return at_most(d, at_least(d, x, low), high);
    }
};

// Applies f to rows × cols sums at c.
HWY_NOINLINE HWY_MAYBE_UNUSED void finish(const Finish& f, size_t rows, size_t cols, float* c,
                                          ptrdiff_t ldc) {
    const auto with = [&](auto fn) HWY_ATTR { finish_with(f, rows, cols, c, ldc, fn); };
    switch (f.activation) {
        case Activation::none: return with(None());
        case Activation::relu: return with([](auto d, auto x) HWY_ATTR { return vec_relu(d, x); });
        case Activation::clamp: return with(Clamp{f.clamp_min, f.clamp_max});
        case Activation::gelu_erf: return with([](auto d, auto x) HWY_ATTR { return vec_gelu_erf(d, x); });
        case Activation::gelu_tanh: return with([](auto d, auto x) HWY_ATTR { return vec_gelu_tanh(d, x); });
        case Activation::silu: return with([](auto d, auto x) HWY_ATTR { return vec_silu(d, x); });
        case Activation::sigmoid: return with([](auto d, auto x) HWY_ATTR { return vec_sigmoid(d, x); });
        case Activation::tanh: return with([](auto d, auto x) HWY_ATTR { return vec_tanh(d, x); });
    }
}

}  // namespace
}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEADRACE_KERNELS_GEMM_EPILOGUE_INL_H_
