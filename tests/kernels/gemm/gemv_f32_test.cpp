#include "kernels/gemm/gemv_f32.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "base/half.h"
#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/matrix.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;
using testing::Guarded;
using testing::random_floats;

struct Size {
    size_t rows, n, k;
};

// Multiplies random rows and compares with sums in f64 over value(j, l); memory beyond y and x is guarded.
void expect_product(const Size& size, Guarded::Side side, const std::function<double(size_t, size_t)>& value,
                    const std::function<void(const GemvArgs&)>& multiply) {
    SCOPED_TRACE(::testing::Message() << size.rows << "x" << size.n << "x" << size.k);
    const std::vector<float> values = random_floats(size.rows * size.k, 7);
    Guarded x(values, side), y(std::vector<float>(size.rows * size.n, NAN), side);
    multiply({x.data(), y.data(), size.rows, size.n, size.k, static_cast<ptrdiff_t>(size.n)});
    for (size_t i = 0; i < size.rows; ++i)
        for (size_t j = 0; j < size.n; ++j) {
            double sum = 0, magnitude = 0;
            for (size_t l = 0; l < size.k; ++l) {
                const double term = values[i * size.k + l] * value(j, l);
                sum += term;
                magnitude += std::fabs(term);
            }
            ASSERT_NEAR(y.data()[i * size.n + j], sum, 1e-6 * magnitude + 1e-30) << "at " << i << ", " << j;
        }
}

constexpr Size kSizes[] = {{1, 1, 1},  {1, 4, 16}, {2, 5, 31},   {3, 7, 33},
                           {4, 8, 64}, {5, 3, 95}, {11, 9, 130}, {1, 13, 300}};
constexpr Size kGroupedSizes[] = {{1, 1, 32}, {1, 4, 64}, {2, 5, 96}, {3, 7, 32}, {4, 8, 256}, {9, 6, 160}};
constexpr Guarded::Side kSides[] = {Guarded::Side::front, Guarded::Side::back};

TEST(GemvArgs, MultiplyRowsOfAMatrixInF32) {
    for_each_target([] {
        for (const Guarded::Side side : kSides)
            for (const Size& size : kSizes) {
                const size_t stride = size.k + 3;
                std::vector<float> w = random_floats(size.n * stride, 2);
                w.resize((size.n - 1) * stride + size.k);  // nothing follows the last row
                Guarded memory(w, side);
                expect_product(
                    size, side, [&](size_t j, size_t l) { return w[j * stride + l]; },
                    [&](const GemvArgs& g) { gemv_f32(g, memory.data(), static_cast<ptrdiff_t>(stride)); });
            }
    });
}

TEST(GemvArgs, MultiplyHalfFloatsByTheirExactValues) {
    for_each_target([] {
        for (const bool is_bf16 : {false, true})
            for (const Guarded::Side side : kSides)
                for (const Size& size : kSizes) {
                    const std::vector<float> values = random_floats(size.n * size.k, 3);
                    std::vector<float> bits((values.size() + 1) / 2);  // floats, so that pages can guard them
                    auto* half_floats = reinterpret_cast<std::uint16_t*>(bits.data());
                    for (size_t i = 0; i < values.size(); ++i)
                        half_floats[i] = is_bf16 ? float_to_bfloat(values[i]) : float_to_half(values[i]);
                    Guarded memory(bits, side);
                    expect_product(
                        size, side,
                        [&](size_t j, size_t l) {
                            const std::uint16_t half = half_floats[j * size.k + l];
                            return is_bf16 ? bfloat_to_float(half) : half_to_float(half);
                        },
                        [&](const GemvArgs& g) {
                            gemv_half(g, reinterpret_cast<const std::uint16_t*>(memory.data()),
                                      static_cast<ptrdiff_t>(size.k), is_bf16);
                        });
                }
    });
}

// Codes one after the other from the lowest bit on.
std::vector<float> packed_codes(const std::vector<unsigned>& codes, int bits) {
    std::vector<std::uint8_t> bytes(codes.size() * static_cast<size_t>(bits) / 8);
    for (size_t i = 0; i < codes.size(); ++i)
        for (int bit = 0; bit < bits; ++bit) {
            const size_t at = i * static_cast<size_t>(bits) + static_cast<size_t>(bit);
            bytes[at / 8] |= static_cast<std::uint8_t>((codes[i] >> bit & 1) << at % 8);
        }
    std::vector<float> floats(bytes.size() / sizeof(float));
    std::memcpy(floats.data(), bytes.data(), bytes.size());
    return floats;
}

void expect_affine_product(const Size& size, int bits, bool has_biases, Guarded::Side side) {
    SCOPED_TRACE(::testing::Message() << bits << (has_biases ? " bits and biases" : " bits"));
    const size_t count = size.n * size.k;
    std::vector<unsigned> codes(count);
    for (size_t i = 0; i < count; ++i) codes[i] = (i * 2654435761u >> 13) & ((1u << bits) - 1);
    const std::vector<float> scales = random_floats(count / kAffineGroup, 4),
                             biases = random_floats(count / kAffineGroup, 5);
    Guarded memory(packed_codes(codes, bits), side), scale_memory(scales, side), bias_memory(biases, side);
    const float offset = static_cast<float>(1 << (bits - 1));
    const AffineMatrix w{reinterpret_cast<const std::uint8_t*>(memory.data()),
                         scale_memory.data(),
                         has_biases ? bias_memory.data() : nullptr,
                         offset,
                         bits,
                         static_cast<ptrdiff_t>(size.k / 8) * bits,
                         static_cast<ptrdiff_t>(size.k / kAffineGroup)};
    expect_product(
        size, side,
        [&](size_t j, size_t l) {
            const size_t at = j * size.k + l, group = at / kAffineGroup;
            const double scale = scales[group];
            return scale * codes[at] + (has_biases ? static_cast<double>(biases[group]) : -offset * scale);
        },
        [&](const GemvArgs& g) { gemv_affine(g, w); });
}

TEST(GemvArgs, MultiplyAffineCodesByTheValuesThatTheyStandFor) {
    for_each_target([] {
        for (const int bits : {4, 5, 8})
            for (const bool has_biases : {false, true})
                for (const Guarded::Side side : kSides)
                    for (const Size& size : kGroupedSizes)
                        expect_affine_product(size, bits, has_biases, side);
    });
}

}  // namespace
}  // namespace headrace::kernels
