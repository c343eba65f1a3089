#include "base/byte_lru.h"

#include <gtest/gtest.h>

#include <string>

namespace headrace {
namespace {

TEST(ByteLru, DropsTheLeastRecentlyUsedWhenTheBytesAreExceeded) {
    ByteLru<int, std::string> cache(100);
    cache.insert(1, "one", 40);
    cache.insert(2, "two", 40);
    ASSERT_NE(cache.find(1), nullptr);
    cache.insert(3, "three", 40);
    EXPECT_EQ(cache.find(2), nullptr);
    ASSERT_NE(cache.find(1), nullptr);
    EXPECT_EQ(*cache.find(3), "three");
    EXPECT_EQ(cache.bytes(), 80u);
}

TEST(ByteLru, KeepsTheNewestWhateverItsSize) {
    ByteLru<int, std::string> cache(100);
    cache.insert(1, "one", 40);
    cache.insert(2, "two", 400);
    EXPECT_EQ(cache.size(), 1u);
    EXPECT_EQ(*cache.newest(), "two");
    cache.insert(3, "three", 10);
    EXPECT_EQ(cache.size(), 1u);
    EXPECT_EQ(*cache.newest(), "three");
    EXPECT_EQ(cache.bytes(), 10u);
}

TEST(ByteLru, GivesTheNewestAway) {
    ByteLru<int, std::string> cache(100);
    cache.insert(1, "one", 40);
    cache.insert(2, "two", 50);
    EXPECT_EQ(cache.take_newest(), std::pair(2, std::string("two")));
    EXPECT_EQ(cache.find(2), nullptr);
    EXPECT_EQ(cache.bytes(), 40u);
    EXPECT_EQ(*cache.newest(), "one");
    cache.insert(2, "again", 50);
    EXPECT_EQ(*cache.find(2), "again");
}

TEST(ByteLru, HoldsAnyNumberOfSmallEntries) {
    ByteLru<int, int> cache(1000);
    for (int i = 0; i < 1000; ++i) cache.insert(i, i, 1);
    for (int i = 0; i < 1000; ++i) ASSERT_NE(cache.find(i), nullptr);
    EXPECT_EQ(cache.size(), 1000u);
}

TEST(ByteLru, IsEmptyAtFirst) {
    ByteLru<int, int> cache(10);
    EXPECT_EQ(cache.newest(), nullptr);
    EXPECT_EQ(cache.find(0), nullptr);
}

}  // namespace
}  // namespace headrace
