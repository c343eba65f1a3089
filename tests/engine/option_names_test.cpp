#include "headrace/option_names.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(OptionNames, AreThoseOfTheDocumentation) {
    EXPECT_EQ(find_precision("exact"), Precision::exact);
    EXPECT_EQ(find_precision("fast"), Precision::fast);
    EXPECT_EQ(find_memory_use("normal"), MemoryUse::normal);
    EXPECT_EQ(find_memory_use("low"), MemoryUse::low);
    for (const std::string_view name : {"as-given", "q8_0", "q4_0"}) {
        ASSERT_TRUE(find_weight_format(name)) << name;
        EXPECT_EQ(name_of(*find_weight_format(name)), name);
    }
}

TEST(OptionNames, OthersAreNone) {
    for (const char* other : {"", "Exact", "fast ", "lo", "q8"}) {
        EXPECT_FALSE(find_precision(other)) << other;
        EXPECT_FALSE(find_memory_use(other)) << other;
        EXPECT_FALSE(find_weight_format(other)) << other;
    }
}

}  // namespace
}  // namespace headrace
