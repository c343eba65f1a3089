#include "kernels/tensor/normalize_f32.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/tensor/normalize_f32.cpp"
#include "hwy/foreach_target.h"
#include "kernels/simd/math-inl.h"
#include "kernels/simd/memory-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headrace::kernels::HWY_NAMESPACE {
namespace {

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// A whole vector of a row, at element i.
struct Whole {
    size_t i;
    HWY_INLINE Vec load(const float* p) const { return hn::LoadU(Tag(), p + i); }
    HWY_INLINE void store(Vec v, float* p) const { hn::StoreU(v, Tag(), p + i); }
    HWY_INLINE Vec or_else(Vec v, float) const { return v; }
};

// The last `count` elements of a row, fewer than a vector.
struct Rest {
    size_t i, count;
    HWY_INLINE Vec load(const float* p) const { return load_first(Tag(), p + i, count); }
    HWY_INLINE void store(Vec v, float* p) const { store_first(v, Tag(), p + i, count); }
    // v with the lanes beyond the row replaced.
    HWY_INLINE Vec or_else(Vec v, float other) const {
        return hn::IfThenElse(hn::FirstN(Tag(), count), v, hn::Set(Tag(), other));
    }
};

// Calls step(accumulator, place) for every vector of a row. Two accumulators keep two
// chains of operations in flight.
template <class Step>
HWY_INLINE void for_row(size_t n, Vec (&accumulators)[2], Step step) {
    const size_t lanes = hn::Lanes(Tag());
    size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        step(accumulators[0], Whole{i});
        step(accumulators[1], Whole{i + lanes});
    }
    if (i + lanes <= n) {
        step(accumulators[0], Whole{i});
        i += lanes;
    }
    if (i < n) step(accumulators[1], Rest{i, n - i});
}

template <class Step>
HWY_INLINE float sum_row(size_t n, Step step) {
    const Tag d;
    Vec sums[2] = {hn::Zero(d), hn::Zero(d)};
    for_row(n, sums, step);
    return hn::GetLane(hn::SumOfLanes(d, hn::Add(sums[0], sums[1])));
}

// Writes x + residual, and the copy the caller asked for; returns the row to normalise.
HWY_INLINE const float* add_residual(const LayerNormArgs& g, size_t row) {
    const float* x = g.x + row * g.x_stride;
    if (!g.residual && !g.sum) return x;
    const float* residual = g.residual ? g.residual + row * g.residual_stride : nullptr;
    float* sum = g.sum ? g.sum + row * g.sum_stride : g.y + row * g.y_stride;
    Vec unused[2] = {hn::Zero(Tag()), hn::Zero(Tag())};
    for_row(g.n, unused, [&](Vec&, auto at) HWY_ATTR {
        const Vec v = at.load(x);
        at.store(residual ? hn::Add(v, at.load(residual)) : v, sum);
    });
    return sum;
}

// y = (x − mean) * factor * scale + bias.
HWY_INLINE void write_row(const LayerNormArgs& g, const float* x, float mean, float factor, float* y) {
    const Tag d;
    const Vec means = hn::Set(d, mean), factors = hn::Set(d, factor);
    Vec unused[2] = {means, means};
    const auto write = [&](auto scale_and_shift) HWY_ATTR {
        for_row(g.n, unused, [&](Vec&, auto at) HWY_ATTR {
            const Vec v = hn::Mul(hn::Sub(at.load(x), means), factors);
            at.store(scale_and_shift(v, at), y);
        });
    };
    if (g.scale && g.bias) {
        write([&](Vec v, auto at) HWY_ATTR { return hn::MulAdd(v, at.load(g.scale), at.load(g.bias)); });
    } else if (g.scale) {
        write([&](Vec v, auto at) HWY_ATTR { return hn::Mul(v, at.load(g.scale)); });
    } else if (g.bias) {
        write([&](Vec v, auto at) HWY_ATTR { return hn::Add(v, at.load(g.bias)); });
    } else {
        write([&](Vec v, auto) HWY_ATTR { return v; });
    }
}

template <bool kCentered>
HWY_INLINE void normalize_rows(const LayerNormArgs& g, size_t begin, size_t end) {
    const float count = static_cast<float>(g.n);
    for (size_t row = begin; row < end; ++row) {
        const float* x = add_residual(g, row);
        float mean = 0;
        if constexpr (kCentered) {
            mean = sum_row(g.n, [&](Vec& sum, auto at) HWY_ATTR { sum = hn::Add(sum, at.load(x)); }) / count;
        }
        // The second pass over deviations, not E[x²] − E[x]², keeps rows with a large mean accurate.
        const Vec means = hn::Set(Tag(), mean);
        const float squares = sum_row(g.n, [&](Vec& sum, auto at) HWY_ATTR {
            const Vec v = at.or_else(hn::Sub(at.load(x), means), 0.0f);
            sum = hn::MulAdd(v, v, sum);
        });
        write_row(g, x, mean, 1.0f / std::sqrt(squares / count + g.eps), g.y + row * g.y_stride);
    }
}

// A row of scores on its way to their softmax: exp(values * factor − most) is what is summed.
struct Scores {
    const float* values;
    float factor, most;
};

// Finds the largest value of x * scale + mask. Those are written to y unless exp can take them from x.
HWY_INLINE Scores prepare_row(const SoftmaxArgs& g, size_t row) {
    const Tag d;
    const float* x = g.x + row * g.x_stride;
    float* y = g.y + row * g.y_stride;
    Vec largest[2] = {hn::Set(d, -std::numeric_limits<float>::infinity()),
                      hn::Set(d, -std::numeric_limits<float>::infinity())};
    const auto take = [](Vec& most, Vec v, auto at) HWY_ATTR {
        most = hn::Max(most, at.or_else(v, -std::numeric_limits<float>::infinity()));
    };
    const auto result = [&](const float* values, float factor) HWY_ATTR {
        const float most = hn::GetLane(hn::MaxOfLanes(d, hn::Max(largest[0], largest[1])));
        return Scores{values, factor, most * factor};
    };
    if (g.mask) {
        const float* mask = g.mask + (g.mask_rows ? row % g.mask_rows : row) * g.mask_stride;
        for_row(g.n, largest, [&](Vec& most, auto at) HWY_ATTR {
            const Vec v = hn::MulAdd(at.load(x), hn::Set(d, g.scale), at.load(mask));
            at.store(v, y);
            take(most, v, at);
        });
        return result(y, 1);
    }
    if (g.scale > 0 && g.scale <= 1) {  // the order stays, and the largest cannot overflow
        for_row(g.n, largest, [&](Vec& most, auto at) HWY_ATTR { take(most, at.load(x), at); });
        return result(x, g.scale);
    }
    for_row(g.n, largest, [&](Vec& most, auto at) HWY_ATTR {
        const Vec v = hn::Mul(at.load(x), hn::Set(d, g.scale));
        at.store(v, y);
        take(most, v, at);
    });
    return result(y, 1);
}

// y = exp(values * factor − most); returns the sum.
HWY_INLINE float exp_row(const Scores& scores, size_t n, float* y) {
    const Tag d;
    const Vec factor = hn::Set(d, scores.factor), most = hn::Set(d, scores.most);
    return sum_row(n, [&](Vec& sum, auto at) HWY_ATTR {
        const Vec e = exp_of_nonpositive(d, hn::MulSub(at.load(scores.values), factor, most));
        at.store(e, y);
        sum = hn::Add(sum, at.or_else(e, 0.0f));
    });
}

bool has_nan(const float* values, size_t n) {
    return std::any_of(values, values + n, [](float x) { return std::isnan(x); });
}

// Rows that go through each step together, so that none waits for the largest value or the sum of its
// predecessor; few enough to stay in the L1 cache.
constexpr size_t kRowsTogether = 8, kFloatsTogether = 4096;

HWY_INLINE void softmax_together(const SoftmaxArgs& g, size_t begin, size_t count) {
    Scores scores[kRowsTogether];
    float sums[kRowsTogether];
    for (size_t i = 0; i < count; ++i) scores[i] = prepare_row(g, begin + i);
    for (size_t i = 0; i < count; ++i) {
        float* y = g.y + (begin + i) * g.y_stride;
        const bool is_nothing = g.sums && scores[i].most == -std::numeric_limits<float>::infinity() &&
                                !has_nan(scores[i].values, g.n);
        if (is_nothing) std::fill_n(y, g.n, 0.0f);
        sums[i] = is_nothing ? 0 : exp_row(scores[i], g.n, y);
    }
    for (size_t i = 0; i < count; ++i) {
        if (g.sums) {
            g.sums[begin + i] = sums[i];
            continue;
        }
        float* y = g.y + (begin + i) * g.y_stride;
        const Vec factor = hn::Set(Tag(), 1.0f / sums[i]);
        Vec unused[2] = {factor, factor};
        for_row(g.n, unused, [&](Vec&, auto at) HWY_ATTR { at.store(hn::Mul(at.load(y), factor), y); });
    }
}

}  // namespace

void layer_norm_rows(const LayerNormArgs& g, size_t begin, size_t end) {
    normalize_rows<true>(g, begin, end);
}
void rms_norm_rows(const LayerNormArgs& g, size_t begin, size_t end) { normalize_rows<false>(g, begin, end); }

// The same in floats, the mean in two parts.
struct RoundedShiftAndScale {
    float first, second, factor, bias;

    explicit RoundedShiftAndScale(const ShiftAndScale& g)
        : first(static_cast<float>(g.mean)),
          second(std::isfinite(first) ? static_cast<float>(g.mean - first) : 0.0f),
          factor(static_cast<float>(g.factor)),
          bias(static_cast<float>(g.bias)) {}
};

void shift_and_scale_run(const float* x, size_t n, const ShiftAndScale& all, float* y) {
    const Tag d;
    const RoundedShiftAndScale g(all);
    const Vec first = hn::Set(d, g.first), second = hn::Set(d, g.second);
    const Vec factors = hn::Set(d, g.factor), biases = hn::Set(d, g.bias);
    Vec unused[2] = {first, first};
    for_row(n, unused, [&](Vec&, auto at) HWY_ATTR {
        at.store(hn::MulAdd(hn::Sub(hn::Sub(at.load(x), first), second), factors, biases), y);
    });
}

void shift_and_scale_columns(const float* x, ptrdiff_t stride, size_t rows, size_t n,
                             const ShiftAndScale* columns, float* y) {
    constexpr size_t kTogether = 64;
    alignas(64) float first[kTogether], second[kTogether], factor[kTogether], bias[kTogether];
    for (size_t begin = 0; begin < n; begin += kTogether) {
        const size_t count = std::min(kTogether, n - begin);
        for (size_t i = 0; i < count; ++i) {
            const RoundedShiftAndScale column(columns[begin + i]);
            first[i] = column.first, second[i] = column.second;
            factor[i] = column.factor, bias[i] = column.bias;
        }
        Vec unused[2] = {hn::Zero(Tag()), hn::Zero(Tag())};
        for (size_t row = 0; row < rows; ++row) {
            const ptrdiff_t at = static_cast<ptrdiff_t>(row) * stride + static_cast<ptrdiff_t>(begin);
            for_row(count, unused, [&](Vec&, auto place) HWY_ATTR {
                const Vec centered =
                    hn::Sub(hn::Sub(place.load(x + at), place.load(first)), place.load(second));
                place.store(hn::MulAdd(centered, place.load(factor), place.load(bias)), y + at);
            });
        }
    }
}

void softmax_rows(const SoftmaxArgs& g, size_t begin, size_t end) {
    const size_t together = std::clamp<size_t>(kFloatsTogether / std::max<size_t>(g.n, 1), 1, kRowsTogether);
    for (size_t row = begin; row < end; row += together)
        softmax_together(g, row, std::min(together, end - row));
}

}  // namespace headrace::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headrace::kernels {

HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(softmax_rows);
HWY_EXPORT(shift_and_scale_run);
HWY_EXPORT(shift_and_scale_columns);

void layer_norm_f32(const LayerNormArgs& args, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)(args, args.rows * ith / nth, args.rows * (ith + 1) / nth);
}

void rms_norm_f32(const LayerNormArgs& args, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(args, args.rows * ith / nth, args.rows * (ith + 1) / nth);
}

void shift_and_scale_f32(const float* x, size_t n, const ShiftAndScale& all, float* y) {
    HWY_DYNAMIC_DISPATCH(shift_and_scale_run)(x, n, all, y);
}

void shift_and_scale_rows_f32(const float* x, ptrdiff_t stride, size_t rows, size_t n,
                              const ShiftAndScale* columns, float* y) {
    HWY_DYNAMIC_DISPATCH(shift_and_scale_columns)(x, stride, rows, n, columns, y);
}

void softmax_f32(const SoftmaxArgs& args, int ith, int nth) {
    HWY_DYNAMIC_DISPATCH(softmax_rows)(args, args.rows * ith / nth, args.rows * (ith + 1) / nth);
}

}  // namespace headrace::kernels
#endif
