#include "doors/onnx/reading/item_arithmetic.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "doors/onnx/reading/extents.h"
#include "doors/onnx/reading/refused.h"

namespace headrace::onnx {
namespace {

const Dim kOpen = Dim::symbolic("n");

std::int64_t with(const Dim& d, std::int64_t value) {
    return d
        .number([&](const std::string& name) -> std::optional<Expression> {
            return name == "n" ? std::optional(Expression(value)) : std::nullopt;
        })
        .value();
}

Item scaled_by(float factor) { return product_of(kOpen, known(double{factor}, ElementType::f32)->item(0)); }

TEST(OnnxItems, AreRoundedAsFloatsAre) {
    for (const std::int64_t value : {1, 2, 7, 10, 40, 180, 4095})
        for (const float factor : {0.5F, 2.5F, 0.375F, 3.0F, 160.0F}) {
            const Item scaled = scaled_by(factor);
            const float product = static_cast<float>(value) * factor;
            const auto down = static_cast<std::int64_t>(std::floor(product)),
                       up = static_cast<std::int64_t>(std::ceil(product));
            EXPECT_EQ(with(unary_of_items("floor")(scaled).above, value), down) << value << " " << factor;
            EXPECT_EQ(with(unary_of_items("ceil")(scaled).above, value), up) << value << " " << factor;
            const Item negative = unary_of_items("neg")(unary_of_items("floor")(scaled));
            EXPECT_EQ(with(toward_zero(negative), value), -down) << value << " " << factor;
        }
}

TEST(OnnxItems, LeaveFloatsThatProductsWithExtentsRoundToTheRun) {
    for (const float factor : {0.65F, 0.7F, 1.0F / 3, 1e-3F, 1e9F, std::numeric_limits<float>::infinity()})
        EXPECT_THROW(scaled_by(factor), Undecided) << factor;
}

TEST(OnnxItems, ChooseByOpenComparisonsOnceTheNumbersAreKnown) {
    for (const std::int64_t value : {3, 4, 5, 9})
        for (const auto& [op, holds] : {std::pair("lesser", value < 5), std::pair("equal", value == 5),
                                        std::pair("greater_or_equal", value >= 5)}) {
            const Item condition = binary_of_items(op, false)(kOpen, 5);
            const Item chosen = either_of(condition, kOpen * 2, 7);
            EXPECT_EQ(with(chosen.above, value), holds ? 2 * value : 7) << op << " " << value;
        }
}

}  // namespace
}  // namespace headrace::onnx
