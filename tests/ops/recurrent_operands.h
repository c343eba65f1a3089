#pragma once
#include <cmath>

#include "ops/run_reference.h"

/// What the tests of recurrent ops share.
namespace headrace::testing {

using Values = std::vector<double>;

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Values in [-1, 1] without a pattern.
inline TestTensor f64(Shape shape, std::size_t seed) {
    Values v(static_cast<std::size_t>(TensorType{DType::f64, shape}.elements()));
    for (std::size_t i = 0; i < v.size(); ++i)
        v[i] = static_cast<double>((i * i * 7 + i * 5 + seed) % 17) / 8 - 1;
    return tensor(DType::f64, std::move(shape), v);
}

inline NamedAttrs hidden(std::int64_t size, NamedAttrs more = {}) {
    more.emplace_back("hidden_size", size);
    return more;
}

}  // namespace headrace::testing
