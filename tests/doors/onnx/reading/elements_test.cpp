#include "doors/onnx/reading/elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace headrace::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(OnnxElements, FloatsBeyondTheIntegersAreTheFirstOrTheLastOne) {
    using Limits = std::numeric_limits<std::int64_t>;
    EXPECT_EQ(integer_of(2.9), 2);
    EXPECT_EQ(integer_of(-2.9), -2);
    EXPECT_EQ(integer_of(9.3e18), Limits::max());
    EXPECT_EQ(integer_of(kInfinity), Limits::max());
    EXPECT_EQ(integer_of(-1e300), Limits::min());
    EXPECT_EQ(integer_of(std::nan("")), 0);
    EXPECT_EQ(known(1e300, ElementType::f64)->integer(0), Limits::max());
}

TEST(OnnxElements, IntegersOfEveryWidthAreStoredSo) {
    const auto stored = [](double number, ElementType type) { return known(number, type)->integer(0); };
    EXPECT_EQ(stored(300, ElementType::u8), 255);
    EXPECT_EQ(stored(-1, ElementType::u8), 0);
    EXPECT_EQ(stored(-1e10, ElementType::i32), std::numeric_limits<std::int32_t>::min());
    EXPECT_EQ(stored(kInfinity, ElementType::i64), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(stored(std::nan(""), ElementType::i16), 0);
    EXPECT_EQ(known(std::int64_t{300}, ElementType::u8)->integer(0), 44) << "integers wrap";
}

}  // namespace
}  // namespace headrace::onnx
