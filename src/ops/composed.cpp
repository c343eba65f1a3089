#include "ops/composed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "ops/through_f32.h"

namespace headrace::ops::composed {
namespace {

constexpr float kPi = std::numbers::pi_v<float>, kHalfPi = kPi / 2;

Tensor add(Emit& e, Tensor a, Tensor b) { return e.binary(Binary::add, a, b); }
Tensor sub(Emit& e, Tensor a, Tensor b) { return e.binary(Binary::sub, a, b); }
Tensor mul(Emit& e, Tensor a, Tensor b) { return e.binary(Binary::mul, a, b); }
Tensor div(Emit& e, Tensor a, Tensor b) { return e.binary(Binary::div, a, b); }
Tensor plus(Emit& e, Tensor x, float offset) { return e.scale(x, 1, offset); }
Tensor step(Emit& e, Tensor x) { return e.unary(Unary::step, x); }
Tensor magnitude(Emit& e, Tensor x) { return e.unary(Unary::abs, x); }

/// x where truth is 0, otherwise - x (around 0) or at_one - x.
Tensor reflected(Emit& e, Tensor truth, Tensor x, float at_one) {
    return add(e, e.scale(truth, at_one, 0), mul(e, e.scale(truth, -2, 1), x));
}

/// 0 of NaN alone.
Tensor is_number(Emit& e, Tensor x) { return step(e, plus(e, e.unary(Unary::sigmoid, x), 1)); }

/// log(1 + x) of -1/2 <= x <= 1: twice the area tangent of x / (2 + x), a minimax of relative error 8e-9.
Tensor log1p_near_zero(Emit& e, Tensor x) {
    Tensor s = div(e, x, plus(e, x, 2));
    Tensor curve = polynomial(e, mul(e, s, s),
                              {1.000000004f, 0.3333315734f, 0.2001245507f, 0.1398030237f, 0.1408916301f});
    return e.scale(mul(e, s, curve), 2, 0);
}

/// 1 where -1/2 < x < 1.
Tensor is_near_zero(Emit& e, Tensor x) {
    return mul(e, step(e, e.scale(x, -1, 1)), step(e, plus(e, x, 0.5f)));
}

/// What |x| = c · r beyond c adds to a logarithm of c: log(r), 0 up to there.
Tensor log_beyond(Emit& e, Tensor x, float c) {
    return e.unary(Unary::log, e.clamp(e.scale(x, 1 / c, 0), 1, kInfinity));
}

}  // namespace

Tensor polynomial(Emit& e, Tensor x, std::initializer_list<float> c) {
    const std::vector<float> factors(c);
    Tensor sum = e.scale(x, factors.back(), factors[factors.size() - 2]);
    for (std::size_t i = factors.size() - 2; i-- > 0;) sum = plus(e, mul(e, sum, x), factors[i]);
    return sum;
}

/// A row of one element out of two, for each element.
Tensor select(Emit& e, Tensor truth, Tensor yes, Tensor no) {
    const std::int64_t n = Emit::elements(yes);
    const std::array<std::int64_t, 2> row{1, n}, column{n, 1};
    const std::array<std::int64_t, 3> stacked{2, n, 1};
    Tensor both = e.concat(e.reshape(no, row), e.reshape(yes, row), 0, 2);
    Tensor pairs = e.permute(e.reshape(both, stacked), std::array{1, 0, 2});
    Tensor chosen = e.get_rows(pairs, e.cast(e.reshape(truth, column), DType::i32));
    return e.reshape_like(chosen, yes);
}

Tensor is_negative(Emit& e, Tensor x) {
    Tensor below = step(e, e.unary(Unary::neg, x));
    return step(e, add(e, below, step(e, e.unary(Unary::neg, reciprocal(e, x)))));
}

Tensor compared(Emit& e, Relation relation, Tensor a, Tensor b) {
    if (relation == Relation::greater) return step(e, sub(e, a, b));
    if (relation == Relation::lesser) return step(e, sub(e, b, a));
    Tensor above = step(e, sub(e, a, b)), below = step(e, sub(e, b, a));
    Tensor differ = add(e, above, below);
    // The difference of equal infinities is NaN, which is not above 0.
    Tensor equal = mul(e, mul(e, is_number(e, a), is_number(e, b)), without(e, differ));
    switch (relation) {
        case Relation::not_equal: return without(e, equal);
        case Relation::greater_or_equal: return add(e, above, equal);
        case Relation::lesser_or_equal: return add(e, below, equal);
        default: return equal;
    }
}

/// The root of -1 is NaN.
Tensor nan_where(Emit& e, Tensor wrong, Tensor x) {
    return mul(e, x, e.unary(Unary::sqrt, e.scale(wrong, -2, 1)));
}

Tensor reciprocal(Emit& e, Tensor x) { return div(e, e.fill(x, 1), x); }

Tensor sign(Emit& e, Tensor x) { return keep_nan(e, e.unary(Unary::sign, x), x); }

/// Sums with 2^23 have no fraction, and are rounded to the even neighbour. Numbers from there on have none.
Tensor round_even(Emit& e, Tensor x) {
    constexpr float kWhole = 8388608;
    Tensor size = magnitude(e, x), small = e.clamp(size, 0, kWhole);
    Tensor whole = plus(e, plus(e, small, kWhole), -kWhole);
    return mul(e, e.unary(Unary::sign, x), sub(e, size, sub(e, small, whole)));
}

/// A rational minimax in x² for |x| <= 3.93, beyond which erf is 1 in f32: that of kernels/simd/math-inl.h.
Tensor erf(Emit& e, Tensor x) {
    Tensor near = e.clamp(x, -3.935f, 3.935f), square = mul(e, near, near);
    Tensor p = polynomial(e, square,
                          {1.12837914537f, 0.19078358085f, 0.05279025424f, 3.7795988170e-3f, 2.8480842126e-4f,
                           2.0419734191e-6f});
    Tensor q = polynomial(
        e, square,
        {1.0f, 0.50241026599f, 0.11425742014f, 0.01499741655f, 1.1652102851e-3f, 3.8004092666e-5f});
    return keep_nan(e, e.clamp(div(e, mul(e, near, p), q), -1, 1), x);
}

/// Likewise, for |x| <= 9.02. Devices have tanh as a quotient of exponentials, which is inexact near 0.
Tensor tanh(Emit& e, Tensor x) {
    Tensor near = e.clamp(x, -9.021f, 9.021f), square = mul(e, near, near);
    Tensor p = polynomial(e, square,
                          {0.99999997902f, 0.13379719333f, 0.00349403618f, 2.058350660e-5f, 1.331910437e-8f});
    Tensor q =
        polynomial(e, square, {1.0f, 0.46713034575f, 0.02587107945f, 3.283095433e-4f, 7.762033290e-7f});
    return keep_nan(e, e.clamp(div(e, mul(e, near, p), q), -1, 1), x);
}

Tensor log1p(Emit& e, Tensor x) {
    Tensor near = mul(e, e.clamp(x, -0.5f, 1), is_near_zero(e, x));
    Tensor far = e.unary(Unary::log, plus(e, sub(e, x, near), 1));
    return add(e, log1p_near_zero(e, near), far);
}

Tensor log(Emit& e, Tensor x) {
    Tensor distance = plus(e, x, -1), is_near = is_near_zero(e, distance);
    Tensor near = mul(e, e.clamp(distance, -0.5f, 1), is_near);
    // 1 where x is near 1.
    Tensor far = add(e, mul(e, x, without(e, is_near)), is_near);
    return add(e, log1p_near_zero(e, near), e.unary(Unary::log, far));
}

/// A minimax in x² of relative error 5e-9.
Tensor atan_of_ratio(Emit& e, Tensor x) {
    return mul(
        e, x,
        polynomial(e, mul(e, x, x),
                   {0.9999999976f, -0.3333328364f, 0.1999826597f, -0.1426193232f, 0.1094202661f,
                    -0.08377303687f, 0.0575519016f, -0.03080439823f, 0.01072683767f, -0.001753906454f}));
}

/// Beyond 1: a right angle less that of the reciprocal.
Tensor atan(Emit& e, Tensor x) {
    Tensor size = magnitude(e, x);
    Tensor ratio = mul(e, e.clamp(size, 0, 1), reciprocal(e, e.clamp(size, 1, kInfinity)));
    Tensor angle = reflected(e, step(e, plus(e, size, -1)), atan_of_ratio(e, ratio), kHalfPi);
    return keep_nan(e, mul(e, angle, e.unary(Unary::sign, x)), x);
}

Tensor asin(Emit& e, Tensor x) {
    Tensor rest = mul(e, e.scale(x, -1, 1), plus(e, x, 1));
    return atan(e, div(e, x, e.unary(Unary::sqrt, rest)));
}

Tensor acos(Emit& e, Tensor x) {
    Tensor ratio = div(e, e.scale(x, -1, 1), plus(e, x, 1));
    return e.scale(atan(e, e.unary(Unary::sqrt, ratio)), 2, 0);
}

namespace {

/// e^x is infinite from 88.7 on, half of it not before 89.4: what is beyond 88 is a factor.
struct Halves {
    Tensor x, beyond;
    Halves(Emit& e, Tensor whole) : x(e.clamp(whole, -88, 88)) {
        beyond = e.unary(Unary::exp, sub(e, magnitude(e, whole), magnitude(e, x)));
    }
};

}  // namespace

Tensor sinh(Emit& e, Tensor x) {
    const Halves h(e, x);
    Tensor curve = sub(e, expm1(e, h.x), expm1(e, e.unary(Unary::neg, h.x)));
    return mul(e, e.scale(curve, 0.5f, 0), h.beyond);
}

Tensor cosh(Emit& e, Tensor x) {
    const Halves h(e, x);
    Tensor curve = add(e, e.unary(Unary::exp, h.x), e.unary(Unary::exp, e.unary(Unary::neg, h.x)));
    return mul(e, e.scale(curve, 0.5f, 0), h.beyond);
}

/// log(x + sqrt(x² + 1)) with a sum of which 1 was taken; squares beyond 1e18 would be infinite.
Tensor asinh(Emit& e, Tensor x) {
    constexpr float kFar = 1e18f;
    Tensor size = magnitude(e, x), near = e.clamp(size, 0, kFar), square = mul(e, near, near);
    Tensor root = e.unary(Unary::sqrt, plus(e, square, 1));
    Tensor curve = log1p(e, add(e, near, div(e, square, plus(e, root, 1))));
    return keep_nan(e, mul(e, add(e, curve, log_beyond(e, size, kFar)), e.unary(Unary::sign, x)), x);
}

Tensor acosh(Emit& e, Tensor x) {
    constexpr float kFar = 1e18f;
    Tensor above = plus(e, x, -1), near = e.clamp(above, -kLargest, kFar);
    Tensor root = mul(e, e.unary(Unary::sqrt, near), e.unary(Unary::sqrt, plus(e, near, 2)));
    return keep_nan(e, add(e, log1p(e, add(e, near, root)), log_beyond(e, above, kFar)), x);
}

Tensor atanh(Emit& e, Tensor x) {
    Tensor size = magnitude(e, x);
    Tensor curve = log1p(e, div(e, e.scale(size, 2, 0), e.scale(size, -1, 1)));
    return mul(e, e.scale(curve, 0.5f, 0), e.unary(Unary::sign, x));
}

/// Within a half, a minimax of relative error 2e-8; ggml's own is e^x - 1 on some devices.
Tensor expm1(Emit& e, Tensor x) {
    Tensor is_near = step(e, e.scale(magnitude(e, x), -1, 0.5f));
    Tensor near = mul(e, e.clamp(x, -0.5f, 0.5f), is_near);
    Tensor far = plus(e, e.unary(Unary::exp, sub(e, x, near)), -1);
    return add(e, far,
               mul(e, near,
                   polynomial(e, near,
                              {1.000000001f, 0.5000000417f, 0.1666666291f, 0.0416653182f, 0.008333634677f,
                               0.001399732434f, 0.0001984118154f})));
}

Tensor softplus(Emit& e, Tensor x) {
    Tensor decay = e.unary(Unary::exp, e.unary(Unary::neg, magnitude(e, x)));
    return add(e, e.unary(Unary::relu, x), log1p(e, decay));
}

Tensor elu(Emit& e, Tensor x, float alpha) {
    Tensor below = e.unary(Unary::neg, e.unary(Unary::relu, e.unary(Unary::neg, x)));
    return keep_nan(e, add(e, e.unary(Unary::relu, x), e.scale(expm1(e, below), alpha, 0)), x);
}

/// The difference of equal infinities is NaN, which is not above 0.
Tensor max(Emit& e, Tensor a, Tensor b) { return keep_nan(e, select(e, step(e, sub(e, a, b)), a, b), a); }

Tensor min(Emit& e, Tensor a, Tensor b) { return keep_nan(e, select(e, step(e, sub(e, b, a)), a, b), a); }

Tensor atan2(Emit& e, Tensor y, Tensor x) {
    Tensor up = magnitude(e, y), along = magnitude(e, x), is_steep = step(e, sub(e, up, along));
    Tensor shorter = select(e, is_steep, along, up), longer = select(e, is_steep, up, along);
    // The ratio of two zeros becomes 0, of two infinities 1.
    Tensor ratio = div(e, shorter, add(e, longer, without(e, step(e, longer))));
    ratio = select(e, step(e, plus(e, shorter, -kLargest)), e.fill(ratio, 1), ratio);
    Tensor angle = reflected(e, is_steep, atan_of_ratio(e, ratio), kHalfPi);
    angle = reflected(e, is_negative(e, x), angle, kPi);
    return keep_nan(e, keep_nan(e, mul(e, angle, e.scale(is_negative(e, y), -2, 1)), x), y);
}

namespace {

/// 1 where x is 0; NaN is not.
Tensor is_zero(Emit& e, Tensor x) { return sub(e, is_number(e, x), step(e, magnitude(e, x))); }

/// 1 where x has a fraction; infinities have none.
Tensor has_fraction(Emit& e, Tensor x) { return step(e, sub(e, x, e.unary(Unary::floor, x))); }

constexpr float kMostMultiplied = 31;

/// a to the power of whole numbers up to kMostMultiplied and down to that less than 0, by multiplication.
Tensor multiplied(Emit& e, Tensor a, Tensor b) {
    Tensor one = e.fill(a, 1), product = one, square = a, rest = magnitude(e, b);
    for (int bit = 1; bit <= static_cast<int>(kMostMultiplied); bit *= 2) {
        Tensor half = e.unary(Unary::floor, e.scale(rest, 0.5f, 0));
        // NaN and fractions pass as bits, too; the caller selects other powers for them.
        Tensor is_set = step(e, plus(e, sub(e, rest, e.scale(half, 2, 0)), -0.5f));
        product = mul(e, product, select(e, is_set, square, one));
        square = mul(e, square, square);
        rest = half;
    }
    return select(e, step(e, e.unary(Unary::neg, b)), reciprocal(e, product), product);
}

}  // namespace

Tensor pow(Emit& e, Tensor a, Tensor b) {
    Tensor logarithm = log(e, magnitude(e, a));
    // Anything to the power 0 is 1, and 1 to any power.
    Tensor is_one = step(e, add(e, is_zero(e, b), is_zero(e, logarithm)));
    Tensor exponent = select(e, is_one, e.fill(b, 0), mul(e, logarithm, b));
    Tensor size = e.unary(Unary::exp, exponent);
    Tensor fraction = has_fraction(e, b);
    Tensor is_odd = mul(e, has_fraction(e, e.scale(b, 0.5f, 0)), without(e, fraction));
    Tensor below = is_negative(e, a);
    Tensor signed_power = mul(e, size, e.scale(mul(e, is_odd, below), -2, 1));
    // A finite number below 0 has no power that is no integer, nor one that is NaN.
    Tensor is_finite = without(e, step(e, plus(e, magnitude(e, a), -kLargest)));
    Tensor wrong = mul(e, mul(e, fraction, step(e, e.unary(Unary::neg, a))), is_finite);
    wrong = step(e, add(e, wrong, mul(e, below, without(e, is_number(e, b)))));
    Tensor is_small = step(e, e.scale(magnitude(e, b), -1, kMostMultiplied + 0.5f));
    return select(e, mul(e, is_small, without(e, fraction)), multiplied(e, a, b),
                  nan_where(e, wrong, signed_power));
}

/// Infinities of a margin are 1 - 1 / 0, which are no product with the 0 inside.
Tensor pad(Emit& e, Tensor x, Emit::Extents before, Emit::Extents after, float value) {
    const auto is_zero = [](std::int64_t n) { return n == 0; };
    if (std::ranges::all_of(before, is_zero) && std::ranges::all_of(after, is_zero)) return x;
    Tensor padded = e.pad_zero(x, before, after);
    if (value == 0) return padded;
    Tensor inside = e.pad_zero(e.fill(x, 1), before, after);
    if (std::abs(value) != kInfinity) return sub(e, padded, e.scale(inside, value, -value));
    Tensor margin = plus(e, reciprocal(e, inside), -1);  // 0 inside, infinity beside
    return value < 0 ? sub(e, padded, margin) : add(e, padded, margin);
}

Tensor permuted(Emit& e, Tensor x, Emit::Extents extents, std::span<const int> permutation) {
    if (extents.size() <= 4) return e.contiguous(e.permute(e.reshape(x, extents), permutation));
    std::vector<int> order(extents.size());  // the dimensions as they lie
    std::iota(order.begin(), order.end(), 0);
    for (int axis : permutation) {
        const auto at = std::ranges::find(order, axis);
        const auto product = [&](auto begin, auto end) {
            return std::accumulate(begin, end, std::int64_t{1},
                                   [&](std::int64_t n, int d) { return n * extents[d]; });
        };
        const std::array around{product(order.begin(), at), extents[axis], product(at + 1, order.end())};
        if (around[2] > 1) x = e.contiguous(e.permute(e.reshape(x, around), std::array{0, 2, 1}));
        order.erase(at);
        order.push_back(axis);
    }
    return x;
}

/// The product with 1 or 0 adds the extent to indices that count from the end.
Tensor indices_within(Emit& e, Tensor indices, DType dtype, std::int64_t extent) {
    if (dtype != DType::i32) return e.indices_within(indices, dtype, extent);
    Tensor at = e.cast(e.flatten(indices), DType::f32);
    Tensor from_end = step(e, e.unary(Unary::neg, at));
    at = add(e, at, e.scale(from_end, static_cast<float>(extent), 0));
    return e.cast(e.clamp(at, 0, static_cast<float>(extent - 1)), DType::i32);
}

Tensor picked(Emit& e, Tensor x, Tensor positions) {
    const auto last = static_cast<float>(Emit::extent(x, 1) - 1);
    return picked_rows(e, x, e.cast(e.clamp(positions, 0, last), DType::i32));
}

/// Not every device repeats i32.
Tensor picked_rows(Emit& e, Tensor x, Tensor indices) {
    const std::int64_t outer = Emit::extent(x, 2);
    const std::array<std::int64_t, 2> each{outer, Emit::elements(indices)};
    if (outer > 1) indices = e.cast(e.repeat(e.cast(indices, DType::f32), each), DType::i32);
    return e.get_rows(x, indices);
}

Tensor reversed_rows(Emit& e, Tensor x) {
    const std::int64_t n = Emit::extent(x, 1);
    return picked(e, x, e.scale(e.positions(n), -1, static_cast<float>(n - 1)));
}

namespace {

/// The largest of each row but where that is -infinity, and without NaN, in steps that many threads share.
Tensor largest_numbers(Emit& e, Tensor x) {
    constexpr std::int64_t kLongest = 256;
    std::int64_t n = Emit::extent(x, 0), rows = Emit::elements(x);
    while (n > 1) {
        std::int64_t part = n;
        for (std::int64_t d = 2; d <= std::min(n, kLongest); ++d)
            if (n % d == 0) part = d;
        n /= part, rows /= part;
        const std::array<std::int64_t, 3> image{1, rows, part};
        const std::array<std::int64_t, 2> window{1, part}, none{0, 0};
        x = e.pool_2d(e.reshape(x, image), true, window, window, none);
    }
    const std::array<std::int64_t, 2> column{rows, 1};
    return e.reshape(x, column);
}

}  // namespace

Tensor largest_of(Emit& e, Tensor x, const std::function<Tensor(Tensor)>& largest,
                  const std::function<Tensor(Tensor)>& mean) {
    // ggml's starts from the smallest finite number: where nothing is above -infinity, 1 / 0 - 1 is taken.
    Tensor is_above = without(e, step(e, e.scale(x, -1, -kLargest)));
    Tensor missing = plus(e, reciprocal(e, largest(is_above)), -1);
    // ggml's overlooks NaN, which a mean of numbers within [0, 1] shows.
    Tensor numbers = e.scale(mean(e.unary(Unary::sigmoid, x)), 0, 1);
    return mul(e, sub(e, largest(x), missing), numbers);
}

Tensor largest_of_rows(Emit& e, Tensor x) {
    return largest_of(
        e, x, [&](Tensor y) { return largest_numbers(e, y); }, [&](Tensor y) { return e.mean_rows(y); });
}

/// The second half of each row times the first, with an element in the middle that stays.
Tensor product_of_rows(Emit& e, Tensor x) {
    for (std::int64_t n = Emit::extent(x, 0), rows = Emit::elements(x) / n; n > 1;) {
        const std::int64_t half = n / 2;
        const auto part = [&](std::int64_t first, std::int64_t count) {
            const std::array<std::int64_t, 2> start{0, first}, size{rows, count};
            return e.contiguous(e.slice(x, start, size));
        };
        Tensor product = mul(e, part(0, half), part(half, half));
        x = n % 2 ? e.concat(product, part(n - 1, 1), 1, 2) : product;
        n -= half;
    }
    return x;
}

}  // namespace headrace::ops::composed
