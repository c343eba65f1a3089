#include "kernels/content_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

#include "kernels/each_target.h"

namespace headrace::kernels {
namespace {

using testing::for_each_target;

std::vector<unsigned char> bytes_of_length(size_t count) {
    std::vector<unsigned char> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 37 + i / 251);
    return bytes;
}

TEST(ContentHash, IsTheSameWithEveryInstructionSet) {
    // Files that were written with one are read with another.
    const auto bytes = bytes_of_length(5000);
    for_each_target([&] {
        const ContentHash hash = content_hash(bytes.data(), bytes.size());
        EXPECT_EQ(hash.low, 3672364928248193815u);
        EXPECT_EQ(hash.high, 16293926360028623777u);
    });
}

TEST(ContentHash, ChangesWithEveryBitAndWithTheLength) {
    for_each_target([] {
        std::set<ContentHash> seen;
        size_t count = 0;
        for (const size_t length : {0, 1, 63, 64, 65, 1024, 1100}) {
            auto bytes = bytes_of_length(length);
            seen.insert(content_hash(bytes.data(), length));
            ++count;
            for (size_t bit = 0; bit < length * 8; ++bit, ++count) {
                bytes[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
                seen.insert(content_hash(bytes.data(), length));
                bytes[bit / 8] ^= static_cast<unsigned char>(1u << bit % 8);
            }
        }
        for (size_t zeros = 2; zeros < 200; ++zeros, ++count)
            seen.insert(content_hash(std::vector<char>(zeros).data(), zeros));
        EXPECT_EQ(seen.size(), count);
    });
}

TEST(ContentHash, ChangesWhenWordsChangePlaces) {
    std::vector<std::uint64_t> words(1024);
    std::iota(words.begin(), words.end(), 1);
    const ContentHash before = content_hash(words.data(), words.size() * 8);
    for (const size_t distance : {1, 2, 8, 16, 128, 256, 512}) {
        std::swap(words[3], words[3 + distance]);
        EXPECT_NE(content_hash(words.data(), words.size() * 8), before) << distance;
        std::swap(words[3], words[3 + distance]);
    }
}

}  // namespace
}  // namespace headrace::kernels
