#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/run_reference.h"

namespace headrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Falls from 100, in two ways.
TestTensor falling(DType type) {
    std::vector<double> table;
    for (int x = 0; x < 256; ++x) table.push_back(x < 200 ? 100 - x / 2 : -x / 4);
    return tensor(type, {256}, table);
}

TEST(ByteTable, CountsNegativeNumbersFromBehind) {
    EXPECT_THAT(values<int>("byte_table", {tensor(DType::u8, {4}, {0, 1, 128, 255}), falling(DType::i8)}),
                ElementsAre(100, 100, 36, -63));
    EXPECT_THAT(values<int>("byte_table", {tensor(DType::i8, {4}, {0, 1, -128, -1}), falling(DType::i8)}),
                ElementsAre(100, 100, 36, -63));
}

TEST(ByteTable, WantsAnEntryForEachByte) {
    EXPECT_THAT(error("byte_table", {tensor(DType::u8, {2}, {0, 1}), tensor(DType::u8, {2}, {7, 8})}),
                HasSubstr("it must have 256 elements"));
}

}  // namespace
}  // namespace headrace::testing
