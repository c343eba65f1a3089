#include "doors/onnx/model/small_types.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

namespace headrace::onnx {
namespace {

/// The values are those of the tables in ONNX's documents (its page on 8-bit floats).
TEST(OnnxSmallFloats, HaveTheValuesOfOnnxsTables) {
    EXPECT_EQ(small_float(ElementType::f8e4m3fn, 0x7e), 448.0F);
    EXPECT_EQ(small_float(ElementType::f8e4m3fn, 0x01), 0x1p-9F);
    EXPECT_EQ(small_float(ElementType::f8e4m3fn, 0x88), -0x1p-6F);
    EXPECT_TRUE(std::isnan(small_float(ElementType::f8e4m3fn, 0xff)));
    EXPECT_EQ(small_float(ElementType::f8e4m3fnuz, 0x7f), 240.0F);
    EXPECT_TRUE(std::isnan(small_float(ElementType::f8e4m3fnuz, 0x80)));
    EXPECT_EQ(small_float(ElementType::f8e5m2, 0x7b), 57344.0F);
    EXPECT_EQ(small_float(ElementType::f8e5m2, 0xfc), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(small_float(ElementType::f8e5m2, 0x7d)));
    EXPECT_EQ(small_float(ElementType::f8e5m2fnuz, 0x7f), 57344.0F);
    EXPECT_EQ(small_float(ElementType::f8e8m0, 0), 0x1p-127F);
    EXPECT_TRUE(std::isnan(small_float(ElementType::f8e8m0, 0xff)));
    const std::vector<float> of_four_bits{0, 0.5F, 1, 1.5F, 2, 3, 4, 6};
    for (std::uint32_t bits = 0; bits < 8; ++bits) {
        EXPECT_EQ(small_float(ElementType::f4e2m1, bits), of_four_bits[bits]);
        EXPECT_EQ(small_float(ElementType::f4e2m1, bits | 8), -of_four_bits[bits]);
    }
}

TEST(OnnxSmallIntegers, ShareBytesFromTheLowBitsOn) {
    const std::vector bytes{std::byte{0b11'10'01'00}, std::byte{0b01}};
    const auto as_signed = carried_elements(ElementType::i2, bytes, 5);
    ASSERT_TRUE(as_signed.ok());
    const auto* values = reinterpret_cast<const std::int8_t*>(as_signed.value()->bytes.data());
    EXPECT_THAT(std::vector<int>(values, values + 5), testing::ElementsAre(0, 1, -2, -1, 1));
}

}  // namespace
}  // namespace headrace::onnx
