// Reductions of f32 with SIMD, accumulated in double.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

namespace headrace::kernels {

// Totals begin at 0 or an infinity; an extreme is NaN if any element is.
enum class Reduction { sum, sum_of_magnitudes, sum_of_squares, largest, smallest };

constexpr double first_total(Reduction op) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return op == Reduction::largest ? -kInfinity : op == Reduction::smallest ? kInfinity : 0;
}

// The total of two parts.
inline double combined(Reduction op, double a, double b) {
    if (op == Reduction::largest) return a > b || a != a ? a : b;
    if (op == Reduction::smallest) return a < b || a != a ? a : b;
    return a + b;
}

// What one element adds to the total.
inline double term(Reduction op, double x) {
    return op == Reduction::sum_of_squares ? x * x : op == Reduction::sum_of_magnitudes ? std::abs(x) : x;
}

// The total of n neighbours.
double reduce_run_f32(Reduction op, const float* x, size_t n);

// Takes rows of n floats, `stride` floats apart, into the totals of their columns.
void reduce_rows_f32(Reduction op, const float* x, ptrdiff_t stride, size_t rows, size_t n, double* totals);

// Σ (x − mean)² of n neighbours.
double squared_deviations_f32(const float* x, size_t n, double mean);

// Adds those of rows of n floats, `stride` floats apart, to the totals of their columns, which have a mean
// each.
void squared_deviations_of_rows_f32(const float* x, ptrdiff_t stride, size_t rows, size_t n,
                                    const double* means, double* totals);

}  // namespace headrace::kernels
