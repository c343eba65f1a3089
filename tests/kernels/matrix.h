// Matrices with guard bands for the kernel tests, and a reference product in double precision.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "kernels/guarded.h"

namespace headrace::kernels::testing {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline std::vector<float> random_floats(size_t count, unsigned seed, float low = -1, float high = 1) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<float> uniform(low, high);
    std::vector<float> values(count);
    for (float& v : values) v = uniform(engine);
    return values;
}

// Rows of floats at a distance of `stride`, with NaN between them so that a read or write outside the rows
// shows, and a page that must not be touched behind the last row or before the first.
class Matrix {
public:
    size_t rows, cols;
    ptrdiff_t stride;

    Matrix(size_t rows, size_t cols, size_t gap, unsigned seed)
        : rows(rows),
          cols(cols),
          stride(static_cast<ptrdiff_t>(cols + gap)),
          size_(rows == 0 || cols == 0 ? 0 : (rows - 1) * (cols + gap) + cols),
          values_(std::vector<float>(size_, NAN), seed % 2 ? Guarded::Side::back : Guarded::Side::front) {
        const std::vector<float> data = random_floats(rows * cols, seed);
        for (size_t r = 0; r < rows; ++r)
            for (size_t c = 0; c < cols; ++c) at(r, c) = data[r * cols + c];
    }
    float& at(size_t r, size_t c) {
        return data()[static_cast<ptrdiff_t>(r) * stride + static_cast<ptrdiff_t>(c)];
    }
    float at(size_t r, size_t c) const {
        return data()[static_cast<ptrdiff_t>(r) * stride + static_cast<ptrdiff_t>(c)];
    }
    const float* data() const { return values_.data(); }
    float* data() { return values_.data(); }

    // True if everything between the rows is still NaN.
    bool gaps_untouched() const {
        for (size_t i = 0; i < size_; ++i)
            if (i % static_cast<size_t>(stride) >= cols && !std::isnan(data()[i])) return false;
        return true;
    }

private:
    size_t size_;
    Guarded values_;
};

}  // namespace headrace::kernels::testing
