#include "kernels/tensor/reduce_f32.h"

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/reduce_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/extremes-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

using DoubleTag = hn::CappedTag<double, HWY_LANES(double)>;
using DoubleVec = hn::Vec<DoubleTag>;
inline constexpr size_t kStep = HWY_LANES(double);

HWY_INLINE DoubleVec load_wide(const float* x) {
    return hn::PromoteTo(DoubleTag(), hn::LoadU(hn::Rebind<float, DoubleTag>(), x));
}

template <Reduction kOp>
HWY_INLINE DoubleVec take(DoubleVec total, DoubleVec x) {
    if constexpr (kOp == Reduction::sum) return hn::Add(total, x);
    if constexpr (kOp == Reduction::sum_of_magnitudes) return hn::Add(total, hn::Abs(x));
    if constexpr (kOp == Reduction::sum_of_squares) return hn::MulAdd(x, x, total);
    if constexpr (kOp == Reduction::largest) return better_of<true>(DoubleTag(), total, x);
    if constexpr (kOp == Reduction::smallest) return better_of<false>(DoubleTag(), total, x);
}

// The total of a run, taken vector by vector and one by one at its end.
template <class Take, class TakeOne>
HWY_INLINE double total_of_run(const float* x, size_t n, Take take_vector, TakeOne take_one) {
    const DoubleTag d;
    DoubleVec total[4];
    for (DoubleVec& t : total) t = hn::Zero(d);
    size_t i = 0;
    for (; i + 4 * kStep <= n; i += 4 * kStep) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) total[v] = take_vector(total[v], load_wide(x + i + v * kStep));
    }
    alignas(64) double lanes[kStep];
    hn::Store(hn::Add(hn::Add(total[0], total[1]), hn::Add(total[2], total[3])), d, lanes);
    double all = 0;
    for (const double lane : lanes) all += lane;
    for (; i < n; ++i) all = take_one(all, x[i]);
    return all;
}

template <Reduction kOp>
double run(const float* x, size_t n) {
    if constexpr (kOp == Reduction::largest || kOp == Reduction::smallest)
        return best_of_run<kOp == Reduction::largest>(x, n);
    return total_of_run(
        x, n, [](DoubleVec total, DoubleVec v) HWY_ATTR { return take<kOp>(total, v); },
        [](double total, double v) { return total + term(kOp, v); });
}

// kRows rows at a time, so that the totals are read and written less often than the elements.
template <Reduction kOp, size_t kRows>
HWY_INLINE void take_rows(const float* x, ptrdiff_t stride, size_t n, double* totals) {
    const DoubleTag d;
    size_t i = 0;
    for (; i + kStep <= n; i += kStep) {
        DoubleVec total = hn::LoadU(d, totals + i);
        HWY_UNROLL(8)
        for (size_t r = 0; r < kRows; ++r)
            total = take<kOp>(total, load_wide(x + static_cast<ptrdiff_t>(r) * stride + i));
        hn::StoreU(total, d, totals + i);
    }
    for (; i < n; ++i)
        for (size_t r = 0; r < kRows; ++r)
            totals[i] = combined(kOp, totals[i], term(kOp, x[static_cast<ptrdiff_t>(r) * stride + i]));
}

template <Reduction kOp>
void rows_of(const float* x, ptrdiff_t stride, size_t rows, size_t n, double* totals) {
    constexpr size_t kRows = 8;
    size_t r = 0;
    for (; r + kRows <= rows; r += kRows, x += static_cast<ptrdiff_t>(kRows) * stride)
        take_rows<kOp, kRows>(x, stride, n, totals);
    for (; r < rows; ++r, x += stride) take_rows<kOp, 1>(x, stride, n, totals);
}

}  // namespace

// The reductions of both functions below.
#define HEADRACE_REDUCTIONS(function, ...)                                                             \
    switch (op) {                                                                                      \
        case Reduction::sum: return function<Reduction::sum>(__VA_ARGS__);                             \
        case Reduction::sum_of_magnitudes: return function<Reduction::sum_of_magnitudes>(__VA_ARGS__); \
        case Reduction::sum_of_squares: return function<Reduction::sum_of_squares>(__VA_ARGS__);       \
        case Reduction::largest: return function<Reduction::largest>(__VA_ARGS__);                     \
        default: return function<Reduction::smallest>(__VA_ARGS__);                                    \
    }

double reduce_run_target(Reduction op, const float* x, size_t n) { HEADRACE_REDUCTIONS(run, x, n) }

void reduce_rows_target(Reduction op, const float* x, ptrdiff_t stride, size_t rows, size_t n,
                        double* totals) {
    HEADRACE_REDUCTIONS(rows_of, x, stride, rows, n, totals)
}

#undef HEADRACE_REDUCTIONS

double squared_deviations_target(const float* x, size_t n, double mean) {
    const DoubleVec means = hn::Set(DoubleTag(), mean);
    return total_of_run(
        x, n,
        [means](DoubleVec total, DoubleVec v) HWY_ATTR {
            const DoubleVec deviation = hn::Sub(v, means);
            return hn::MulAdd(deviation, deviation, total);
        },
        [mean](double total, double v) { return total + (v - mean) * (v - mean); });
}

void squared_deviations_of_rows_target(const float* x, ptrdiff_t stride, size_t rows, size_t n,
                                       const double* means, double* totals) {
    const DoubleTag d;
    for (size_t r = 0; r < rows; ++r, x += stride) {
        size_t i = 0;
        for (; i + kStep <= n; i += kStep) {
            const DoubleVec deviation = hn::Sub(load_wide(x + i), hn::LoadU(d, means + i));
            hn::StoreU(hn::MulAdd(deviation, deviation, hn::LoadU(d, totals + i)), d, totals + i);
        }
        for (; i < n; ++i) totals[i] += (x[i] - means[i]) * (x[i] - means[i]);
    }
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(reduce_run_target);
HWY_EXPORT(reduce_rows_target);
HWY_EXPORT(squared_deviations_target);
HWY_EXPORT(squared_deviations_of_rows_target);

double reduce_run_f32(Reduction op, const float* x, size_t n) {
    return HWY_DYNAMIC_DISPATCH(reduce_run_target)(op, x, n);
}

void reduce_rows_f32(Reduction op, const float* x, ptrdiff_t stride, size_t rows, size_t n, double* totals) {
    HWY_DYNAMIC_DISPATCH(reduce_rows_target)(op, x, stride, rows, n, totals);
}

double squared_deviations_f32(const float* x, size_t n, double mean) {
    return HWY_DYNAMIC_DISPATCH(squared_deviations_target)(x, n, mean);
}

void squared_deviations_of_rows_f32(const float* x, ptrdiff_t stride, size_t rows, size_t n,
                                    const double* means, double* totals) {
    HWY_DYNAMIC_DISPATCH(squared_deviations_of_rows_target)(x, stride, rows, n, means, totals);
}

}  // namespace headrace::kernels
#endif
