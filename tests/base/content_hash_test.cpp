#include "base/content_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

TEST(ContentHash, IsXxh3sSoThatFilesOfOtherMachinesAreKnown) {
    EXPECT_EQ(content_hash("", 0), (ContentHash{.low = 0x6001c324468d497fu, .high = 0x99aa06d3014798d8u}));
}

TEST(ContentHash, ChangesWithEveryBitAndWithTheLength) {
    std::string bytes(300, '\0');
    const ContentHash before = content_hash(bytes.data(), bytes.size());
    EXPECT_NE(content_hash(bytes.data(), bytes.size() - 1), before);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= static_cast<char>(1u << bit % 8);
        EXPECT_NE(content_hash(bytes.data(), bytes.size()), before) << bit;
        bytes[bit / 8] ^= static_cast<char>(1u << bit % 8);
    }
}

}  // namespace
}  // namespace headrace
