#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "ops/run_reference.h"

/// What the tests of convolutions and pools share.
namespace headrace::testing {

/// Small integers without a pattern, exact in every float type.
inline TestTensor scattered(DType dtype, Shape shape, int seed = 0) {
    std::vector<double> values(static_cast<std::size_t>(TensorType{dtype, shape}.elements()));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>((i * i * 31 + i * 17 + static_cast<std::size_t>(seed)) % 9) - 4;
    return tensor(dtype, std::move(shape), values);
}

/// numpy.transpose of a 4-D tensor.
inline TestTensor permuted(const TestTensor& t, std::array<int, 4> axes) {
    const auto from = t.type.sizes();
    const auto in = t.as<double>();
    std::array<std::int64_t, 4> stride{from[1] * from[2] * from[3], from[2] * from[3], from[3], 1}, i{};
    Shape shape;
    for (int a : axes) shape.push_back(from[a]);
    std::vector<double> out;
    for (i[0] = 0; i[0] < from[axes[0]]; ++i[0])
        for (i[1] = 0; i[1] < from[axes[1]]; ++i[1])
            for (i[2] = 0; i[2] < from[axes[2]]; ++i[2])
                for (i[3] = 0; i[3] < from[axes[3]]; ++i[3]) {
                    std::int64_t at = 0;
                    for (int d = 0; d < 4; ++d) at += i[d] * stride[axes[d]];
                    out.push_back(in[static_cast<std::size_t>(at)]);
                }
    return tensor(t.type.dtype, shape, out);
}

inline constexpr std::array<int, 4> kToNhwc{0, 2, 3, 1}, kToNchw{0, 3, 1, 2};

/// Attributes of a sliding window.
struct Window {
    std::vector<std::int64_t> padding{0, 0, 0, 0}, strides{1, 1}, dilations{1, 1};
    std::int64_t groups = 1;

    NamedAttrs attrs() const {
        return {{"padding", padding}, {"strides", strides}, {"dilations", dilations}, {"groups", groups}};
    }
};

inline NamedAttrs with(NamedAttrs attrs, std::string key, AttrValue value) {
    attrs.emplace_back(std::move(key), std::move(value));
    return attrs;
}

}  // namespace headrace::testing
