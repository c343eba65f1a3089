#include <gmock/gmock.h>

#include "ir/kernel_error.h"
#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> judged(const std::vector<std::int64_t>& numbers, std::int64_t least, Shape most) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return values<std::int64_t>(
        "checked_numbers", {tensor<std::int64_t>(DType::i64, {count}, numbers)},
        {{"what", std::string("a step")}, {"least", least}, {"most", std::move(most)}});
}

TEST(CheckedNumbers, AreTheNumbersThatLieWithinTheirBounds) {
    EXPECT_THAT(judged({-1, 0, 4}, -1, {4}), ElementsAre(-1, 0, 4));
    EXPECT_THAT(judged({1, 1LL << 60}, 1, {}), ElementsAre(1, 1LL << 60));
}

TEST(CheckedNumbers, ThrowWithWhatTheFirstOneOutsideIs) {
    const auto what = [](const std::vector<std::int64_t>& numbers, std::int64_t least, Shape most) {
        try {
            judged(numbers, least, std::move(most));
        } catch (const KernelError& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_EQ(what({1, 0}, 1, {}), "a step is 0; at least 1 is right");
    EXPECT_EQ(what({1, 7}, 0, {6}), "a step is 7; at most 6 is right");
}

TEST(CheckedNumbers, MayBeAnythingButZero) {
    const NamedAttrs divisor{
        {"what", std::string("a divisor")}, {"least", INT64_MIN}, {"refuses_zero", true}};
    const auto judge = [&](const std::vector<std::int8_t>& numbers) {
        return values<std::int8_t>("checked_numbers", {tensor<std::int8_t>(DType::i8, {2}, numbers)},
                                   divisor);
    };
    EXPECT_THAT(judge({-128, 3}), ElementsAre(-128, 3));
    EXPECT_THROW(judge({1, 0}), KernelError);
}

TEST(CheckedNumbers, HaveOneUpperBound) {
    EXPECT_THAT(infer_error("checked_numbers", {TensorType{DType::i64, {2}}},
                            {{"what", std::string("a step")}, {"most", Shape{3, 5}}}),
                HasSubstr("one or none"));
}

}  // namespace
}  // namespace headrace::testing
