#include "kernels/reduce_f32.h"

#include "kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd_memory-inl.h"

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
    // Comparisons with NaN are false, so it is kept, whichever side it is on.
    if constexpr (kOp == Reduction::largest)
        return hn::IfThenElse(hn::Or(hn::Gt(total, x), hn::IsNaN(total)), total, x);
    if constexpr (kOp == Reduction::smallest)
        return hn::IfThenElse(hn::Or(hn::Lt(total, x), hn::IsNaN(total)), total, x);
}

// Extremes need no double: four vectors of f32, NaN kept as in take().
template <Reduction kOp>
double run_extreme(const float* x, size_t n) {
    const TileTag d;
    const auto better = [&](TileVec best, TileVec v) HWY_ATTR {
        const auto keep = kOp == Reduction::largest ? hn::Gt(best, v) : hn::Lt(best, v);
        return hn::IfThenElse(hn::Or(keep, hn::IsNaN(best)), best, v);
    };
    TileVec best[4];
    for (TileVec& b : best) b = hn::Set(d, static_cast<float>(first_total(kOp)));
    size_t i = 0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) best[v] = better(best[v], hn::LoadU(d, x + i + v * kLanes));
    }
    alignas(64) float lanes[4 * kLanes];
    for (size_t v = 0; v < 4; ++v) hn::Store(best[v], d, lanes + v * kLanes);
    double all = first_total(kOp);
    for (const float lane : lanes) all = combined(kOp, all, lane);
    for (; i < n; ++i) all = combined(kOp, all, x[i]);
    return all;
}

template <Reduction kOp>
double run(const float* x, size_t n) {
    if constexpr (kOp == Reduction::largest || kOp == Reduction::smallest) return run_extreme<kOp>(x, n);
    const DoubleTag d;
    DoubleVec total[4];
    for (DoubleVec& t : total) t = hn::Set(d, first_total(kOp));
    size_t i = 0;
    for (; i + 4 * kStep <= n; i += 4 * kStep) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < 4; ++v) total[v] = take<kOp>(total[v], load_wide(x + i + v * kStep));
    }
    alignas(64) double lanes[4 * kStep];
    for (size_t v = 0; v < 4; ++v) hn::Store(total[v], d, lanes + v * kStep);
    double all = first_total(kOp);
    for (const double lane : lanes) all = combined(kOp, all, lane);
    for (; i < n; ++i) all = combined(kOp, all, term(kOp, x[i]));
    return all;
}

template <Reduction kOp>
void row(const float* x, size_t n, double* totals) {
    const DoubleTag d;
    size_t i = 0;
    for (; i + kStep <= n; i += kStep)
        hn::StoreU(take<kOp>(hn::LoadU(d, totals + i), load_wide(x + i)), d, totals + i);
    for (; i < n; ++i) totals[i] = combined(kOp, totals[i], term(kOp, x[i]));
}

}  // namespace

// What both functions choose from.
#define HEADRACE_REDUCTIONS(function, ...)                                                             \
    switch (op) {                                                                                      \
        case Reduction::sum: return function<Reduction::sum>(__VA_ARGS__);                             \
        case Reduction::sum_of_magnitudes: return function<Reduction::sum_of_magnitudes>(__VA_ARGS__); \
        case Reduction::sum_of_squares: return function<Reduction::sum_of_squares>(__VA_ARGS__);       \
        case Reduction::largest: return function<Reduction::largest>(__VA_ARGS__);                     \
        default: return function<Reduction::smallest>(__VA_ARGS__);                                    \
    }

double reduce_run_target(Reduction op, const float* x, size_t n) { HEADRACE_REDUCTIONS(run, x, n) }

void reduce_row_target(Reduction op, const float* x, size_t n, double* totals) {
    HEADRACE_REDUCTIONS(row, x, n, totals)
}

#undef HEADRACE_REDUCTIONS

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(reduce_run_target);
HWY_EXPORT(reduce_row_target);

double reduce_run_f32(Reduction op, const float* x, size_t n) {
    return HWY_DYNAMIC_DISPATCH(reduce_run_target)(op, x, n);
}

void reduce_row_f32(Reduction op, const float* x, size_t n, double* totals) {
    HWY_DYNAMIC_DISPATCH(reduce_row_target)(op, x, n, totals);
}

}  // namespace headrace::kernels
#endif
