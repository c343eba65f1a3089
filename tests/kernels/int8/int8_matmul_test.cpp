#include "kernels/int8/int8_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/guarded.h"
#include "kernels/int8/byte_quads.h"

namespace headrace::kernels {
namespace {

using testing::Guarded;

struct ProductShape {
    size_t m, n, k;
};
// One row and many, panels and what is left, an odd depth, several slices of depth and strips of rows.
constexpr ProductShape kProductShapes[] = {{1, 1, 1},     {1, 40, 64},  {5, 16, 33},   {7, 37, 20},
                                           {49, 17, 130}, {100, 50, 9}, {13, 33, 1100}};

struct ProductTypes {
    bool signed_a = false, wide_b = false;
    int a_zero = 0;
    bool is_extreme = false, in_quads = false;
};

/// Bytes in integer floats, which end at the page that must not be touched.
class GuardedRows {
public:
    explicit GuardedRows(const std::vector<int>& numbers)
        : floats_(std::vector<float>((numbers.size() + 3) / 4), Guarded::Side::back),
          skip_((numbers.size() + 3) / 4 * 4 - numbers.size()) {
        for (size_t i = 0; i < numbers.size(); ++i) data()[i] = static_cast<std::uint8_t>(numbers[i]);
    }
    std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(floats_.data()) + skip_; }

private:
    Guarded floats_;
    size_t skip_;
};

class ProductCase {
public:
    ProductCase(const ProductShape& s, const ProductTypes& t) : s_(s), t_(t) {
        std::mt19937 random(static_cast<unsigned>(s.n * 31 + s.k));
        const int a_low = t.signed_a ? -128 : 0, b_most = t.wide_b ? 255 : 128;
        for (size_t i = 0; i < s.m * s.k; ++i) a_.push_back(drawn(random, a_low, a_low + 255));
        for (size_t i = 0; i < s.n * s.k; ++i) b_.push_back(drawn(random, -b_most, t.wide_b ? 255 : 127));
        for (size_t i = 0; i < s.n; ++i) {
            bias_.push_back(std::uniform_real_distribution<float>(-2, 2)(random));
            scale_.push_back(std::uniform_real_distribution<float>(0.001f, 0.002f)(random));
        }
        for (size_t i = 0; i < s.m * s.n; ++i)
            residual_.push_back(std::uniform_real_distribution<float>(-2, 2)(random));
    }

    std::int32_t sum(size_t row, size_t column) const {
        std::int64_t total = 0;
        for (size_t i = 0; i < s_.k; ++i)
            total += std::int64_t{a_[row * s_.k + i] - t_.a_zero} * b_[column * s_.k + i];
        return static_cast<std::int32_t>(total);
    }

    void expect_sums(int nth) {
        Guarded y(std::vector<float>(s_.m * s_.n, NAN), Guarded::Side::back);
        auto* sums = reinterpret_cast<std::int32_t*>(y.data());
        run(sums, nth);
        for (size_t i = 0; i < s_.m * s_.n; ++i) ASSERT_EQ(sums[i], sum(i / s_.n, i % s_.n)) << "at " << i;
    }

    void expect_real(int nth, bool has_more) {
        Guarded y(std::vector<float>(s_.m * s_.n, NAN), Guarded::Side::back);
        Guarded bias(bias_, Guarded::Side::back), scale(scale_, Guarded::Side::back),
            residual(residual_, Guarded::Side::back);
        RealSums real{.scale = scale.data(), .factor = 0.3f, .y = y.data()};
        if (has_more)
            real.bias = bias.data(), real.activation = Activation::relu, real.residual = residual.data();
        run(real, nth);
        for (size_t i = 0; i < s_.m * s_.n; ++i) {
            const size_t column = i % s_.n;
            double expected = sum(i / s_.n, column) * static_cast<double>(0.3f * scale_[column]);
            if (has_more)
                expected = std::max(expected + static_cast<double>(bias_[column]), 0.0) +
                           static_cast<double>(residual_[i]);
            ASSERT_NEAR(y.data()[i], expected, 1e-6 * std::max(1.0, std::abs(expected))) << "at " << i;
        }
    }

    void expect_bytes(int nth) {
        GuardedRows y(std::vector<int>(s_.m * s_.n, 77));
        const Requantization bytes{
            .bias = bias_.data(), .scale = scale_.data(), .zero = 100, .low = 3, .high = 250, .y = y.data()};
        run(bytes, nth);
        for (size_t i = 0; i < s_.m * s_.n; ++i) {
            const size_t column = i % s_.n;
            const float real = (static_cast<float>(sum(i / s_.n, column)) + bias_[column]) * scale_[column];
            const double expected =
                std::clamp<double>(std::nearbyint(static_cast<double>(real)) + 100, 3, 250);
            ASSERT_EQ(y.data()[i], expected) << "at " << i;
        }
    }

private:
    int drawn(std::mt19937& random, int low, int high) const {
        if (t_.is_extreme) return random() % 8 ? high : low;
        return std::uniform_int_distribution<int>(low, high)(random);
    }
    template <class T>
    std::vector<float> packed() const {
        const std::vector<T> b(b_.begin(), b_.end());
        std::vector<float> to((packed_pairs_bytes(s_.n, 1, s_.k, sizeof(T)) + 3) / 4);
        pack_pairs<T>(b.data(), s_.n, 1, s_.k, reinterpret_cast<std::byte*>(to.data()));
        return to;
    }
    std::vector<float> packed_quads() const {
        const std::vector<std::int8_t> b(b_.begin(), b_.end());
        std::vector<float> to((packed_quads_bytes(s_.n, 1, s_.k) + 3) / 4);
        pack_quads(b.data(), s_.n, 1, s_.k, reinterpret_cast<std::byte*>(to.data()));
        return to;
    }
    template <class Result>
    void run(Result result, int nth) {
        GuardedRows a(a_);
        Guarded b(t_.in_quads ? packed_quads()
                  : t_.wide_b ? packed<std::int16_t>()
                              : packed<std::int8_t>(),
                  Guarded::Side::back);
        const Int8MatMulArgs args{.m = s_.m,
                                  .n = s_.n,
                                  .k = s_.k,
                                  .a = {a.data(), t_.signed_a},
                                  .a_zero = t_.a_zero,
                                  .is_wide = t_.wide_b,
                                  .result = result};
        const auto multiply = t_.in_quads ? &quad_matmul : &int8_matmul;
        for (int ith = 0; ith < nth; ++ith)
            multiply(args, reinterpret_cast<const std::byte*>(b.data()), ith, nth);
    }

    ProductShape s_;
    ProductTypes t_;
    std::vector<int> a_, b_;
    std::vector<float> bias_, scale_, residual_;
};

void expect_exact(const ProductTypes& types) {
    size_t turn = 0;
    for (const ProductShape& shape : kProductShapes) {
        SCOPED_TRACE(::testing::Message() << "shape " << turn);
        const int nth = testing::thread_count(turn++);
        ProductCase product(shape, types);
        product.expect_sums(nth);
        product.expect_real(nth, false);
        product.expect_real(nth, true);
        product.expect_bytes(nth);
    }
}

void expect_exact_everywhere(const ProductTypes& types) {
    testing::for_each_target([&] { expect_exact(types); });
}

TEST(Int8MatMul, SumsUpExactlyForEachTypeOfBytes) {
    for (const bool signed_a : {false, true})
        for (const bool wide_b : {false, true})
            expect_exact_everywhere({.signed_a = signed_a, .wide_b = wide_b, .a_zero = signed_a ? -5 : 117});
}

TEST(Int8MatMul, HasRoomForTheLargestNumbers) {
    for (const int a_zero : {0, 255})
        for (const bool wide_b : {false, true})
            expect_exact_everywhere({.wide_b = wide_b, .a_zero = a_zero, .is_extreme = true});
}

TEST(QuadMatMul, SumsUpExactlyForEachTypeOfBytes) {
    if (!has_byte_quads()) GTEST_SKIP() << "this processor has no sums of four products of bytes";
    for (const bool signed_a : {false, true})
        for (const bool is_extreme : {false, true})
            for (const int a_zero : {signed_a ? -128 : 0, signed_a ? 127 : 255, 3})
                expect_exact(
                    {.signed_a = signed_a, .a_zero = a_zero, .is_extreme = is_extreme, .in_quads = true});
}

}  // namespace
}  // namespace headrace::kernels
