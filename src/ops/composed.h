#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>

#include "emit/emit.h"

/// What lowerings compose of ggml's operations where ggml has none, in f32. Tensors are contiguous. Results
/// are those of the reference kernels also for NaN, infinities and near 0, where no line says otherwise; some
/// devices' exponentials and logarithms are their own.
///
/// Two tricks recur. A factor of 0 or 1 (Unary::step) takes a term out where that is finite: 0 · infinity is
/// NaN. And a function that is 0 at 0 is computed in two ways as f(x) = near(in) + far(x - in), where `in` is
/// x near 0 and 0 elsewhere.
namespace headrace::ops::composed {

using Tensor = ggml_tensor*;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                       kLargest = std::numeric_limits<float>::max();

/// Positions in tensors are f32 on their way to being i32, and exact up to here.
inline constexpr std::int64_t kMostPositions = 1 << 24;

/// 1 - x of a truth value x.
inline Tensor without(Emit& e, Tensor truth) { return e.scale(truth, -1, 1); }

/// c[0] + c[1] x + c[2] x² ...
Tensor polynomial(Emit& e, Tensor x, std::initializer_list<float> c);

/// `yes` where truth is 1, `no` where it is 0, bit by bit; all have the same extents.
Tensor select(Emit& e, Tensor truth, Tensor yes, Tensor no);

/// 1 where the sign bit is set: of negative numbers and of -0; 0 of NaN.
Tensor is_negative(Emit& e, Tensor x);

enum class Relation : std::uint8_t { equal, not_equal, greater, greater_or_equal, lesser, lesser_or_equal };
/// 1 where the relation holds of numbers, which are as far apart as normal numbers where they differ; nothing
/// but not_equal holds of NaN.
Tensor compared(Emit& e, Relation relation, Tensor a, Tensor b);

/// x or NaN, where `wrong` is 0 or 1.
Tensor nan_where(Emit& e, Tensor wrong, Tensor x);

Tensor reciprocal(Emit& e, Tensor x);
Tensor sign(Emit& e, Tensor x);
Tensor round_even(Emit& e, Tensor x);
Tensor erf(Emit& e, Tensor x);
Tensor tanh(Emit& e, Tensor x);
Tensor log1p(Emit& e, Tensor x);
/// The logarithm of a number that is not negative, exact near 1.
Tensor log(Emit& e, Tensor x);
/// atan of x within [0, 1].
Tensor atan_of_ratio(Emit& e, Tensor x);
Tensor atan(Emit& e, Tensor x);
Tensor asin(Emit& e, Tensor x);
Tensor acos(Emit& e, Tensor x);
Tensor sinh(Emit& e, Tensor x);
Tensor cosh(Emit& e, Tensor x);
Tensor asinh(Emit& e, Tensor x);
Tensor acosh(Emit& e, Tensor x);
Tensor atanh(Emit& e, Tensor x);
Tensor expm1(Emit& e, Tensor x);
Tensor softplus(Emit& e, Tensor x);
Tensor elu(Emit& e, Tensor x, float alpha);

/// b broadcasts as a does: both have the result's extents.
Tensor max(Emit& e, Tensor a, Tensor b);
Tensor min(Emit& e, Tensor a, Tensor b);
Tensor atan2(Emit& e, Tensor y, Tensor x);
/// Where b is no small whole number, its relative error grows with |b log a|, to 1e-5 at the ends of the
/// range.
Tensor pow(Emit& e, Tensor a, Tensor b);

/// A tensor of those extents, of any type, with its dimensions in another order, as numpy.transpose has it.
/// More dimensions than ggml's four are moved one by one.
Tensor permuted(Emit& e, Tensor x, Emit::Extents extents, std::span<const int> permutation);

/// x[outer, n, inner] at positions of the middle dimension: [outer, count, inner]. The positions are whole
/// numbers in f32 and count from 0; those that are outside are moved to the nearest.
Tensor picked(Emit& e, Tensor x, Tensor positions);
/// The same at indices in i32 that are within: x may have rows in blocks.
Tensor picked_rows(Emit& e, Tensor x, Tensor indices);
/// Indices as WebNN reads them (ops/indices.h): in i32, flat, within [0, extent).
Tensor indices_within(Emit& e, Tensor indices, DType dtype, std::int64_t extent);

/// x with so many elements `value` before and after it in each of its first dimensions, at most 4.
Tensor pad(Emit& e, Tensor x, Emit::Extents before, Emit::Extents after, float value);

/// x[..., n, width] with the rows of each matrix in opposite order, at most 3 dimensions.
Tensor reversed_rows(Emit& e, Tensor x);

/// The largest of parts of x, of which `largest` gives that of numbers, or the smallest finite number, and
/// `mean` the mean.
Tensor largest_of(Emit& e, Tensor x, const std::function<Tensor(Tensor)>& largest,
                  const std::function<Tensor(Tensor)>& mean);

/// The largest element of each row of x[rows, n], as [rows, 1].
Tensor largest_of_rows(Emit& e, Tensor x);
/// In halves, so that what overflows in between need not be what does one by one.
Tensor product_of_rows(Emit& e, Tensor x);

}  // namespace headrace::ops::composed
