// Matrices with guard bands for the kernel tests, and a reference product in double precision.
#pragma once

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

namespace headrace::kernels::testing {

inline std::vector<float> random_floats(size_t count, unsigned seed, float low = -1, float high = 1) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(count);
    for (float& v : values) v = uniform(engine);
    return values;
}

// Rows of floats at a distance of `stride`, with NaN between them so that a read or
// write outside the rows shows.
struct Matrix {
    size_t rows, cols;
    ptrdiff_t stride;
    std::vector<float> values;

    Matrix(size_t rows, size_t cols, size_t gap, unsigned seed)
        : rows(rows),
          cols(cols),
          stride(static_cast<ptrdiff_t>(cols + gap)),
          values(rows * (cols + gap) + 1, NAN) {
        const std::vector<float> data = random_floats(rows * cols, seed);
        for (size_t r = 0; r < rows; ++r)
            for (size_t c = 0; c < cols; ++c) at(r, c) = data[r * cols + c];
    }
    float& at(size_t r, size_t c) { return values[r * stride + c]; }
    float at(size_t r, size_t c) const { return values[r * stride + c]; }
    const float* data() const { return values.data(); }
    float* data() { return values.data(); }

    // True if everything between the rows is still NaN.
    bool gaps_untouched() const {
        for (size_t i = 0; i < values.size(); ++i) {
            const bool in_row = i / stride < rows && i % stride < cols;
            if (!in_row && !std::isnan(values[i])) return false;
        }
        return true;
    }
};

}  // namespace headrace::kernels::testing
