#include "base/buffer_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace headrace {
namespace {

PooledBuffer take(const BufferPool& pool, std::size_t bytes, bool reuse = true) {
    return PooledBuffer::take(pool, bytes, "a test", reuse).value();
}

TEST(BufferPool, HandsABufferOfTheSameSizeOutAgain) {
    const BufferPool pool;
    const std::byte* first = take(pool, 1000).data();
    const PooledBuffer again = take(pool, 1000);
    EXPECT_EQ(again.data(), first);
    EXPECT_EQ(again.bytes(), 1000u);
    EXPECT_EQ(pool.stats().allocations, 1);
    EXPECT_EQ(pool.stats().reuses, 1);
    EXPECT_EQ(pool.stats().requests, 2);
}

TEST(BufferPool, SharesABufferOnlyAmongSizesThatRoundToTheSameMultipleOf64) {
    const BufferPool pool;
    take(pool, 1000);
    take(pool, 1024);
    EXPECT_EQ(pool.stats().allocations, 1);
    take(pool, 1025);
    EXPECT_EQ(pool.stats().allocations, 2);
    EXPECT_EQ(pool.stats().allocated_bytes, 1024u + 1088);
}

TEST(BufferPool, LetsLargeBuffersServeDownToHalfTheirSize) {
    const BufferPool pool;
    take(pool, 1'000'000);
    const PooledBuffer smaller = take(pool, 600'000);
    EXPECT_EQ(pool.stats().reuses, 1);
    EXPECT_EQ(smaller.bytes(), 600'000u);
    EXPECT_GE(pool.stats().live_bytes, 1'000'000u) << "all of it is handed out";
    take(pool, 400'000);
    EXPECT_EQ(pool.stats().allocations, 2);
}

TEST(BufferPool, KeepsNoMoreIdleThanTwiceWhatWasHandedOutAtOnce) {
    const BufferPool pool;
    for (std::size_t i = 1; i <= 200; ++i) take(pool, i * 300'000);
    EXPECT_LE(pool.stats().idle_bytes, 2 * 60'000'064u);
    EXPECT_GE(pool.stats().idle_bytes, 60'000'000u);
    const BufferPool small;
    for (std::size_t i = 1; i <= 1000; ++i) take(small, i * 2048);
    EXPECT_LE(small.stats().idle_bytes, std::size_t{8} << 20);
}

TEST(BufferPool, GivesTwoHoldersDifferentMemory) {
    const BufferPool pool;
    std::set<const std::byte*> seen;
    std::vector<PooledBuffer> held;
    for (int i = 0; i < 5; ++i) {
        held.push_back(take(pool, 256));
        seen.insert(held.back().data());
    }
    EXPECT_EQ(seen.size(), 5u);
    EXPECT_EQ(pool.stats().live_bytes, 5u * 256);
    held.clear();
    EXPECT_EQ(pool.stats().live_bytes, 0u);
    EXPECT_EQ(pool.stats().idle_buffers, 5);
    EXPECT_EQ(pool.stats().peak_bytes, 5u * 256);
}

TEST(BufferPool, KeepsSixteenOfASizeUnlessToldOtherwise) {
    const BufferPool sixteen, two(2);
    for (const auto& [pool, kept] : {std::pair(&sixteen, 16), std::pair(&two, 2)}) {
        std::vector<PooledBuffer> held;
        for (int i = 0; i < 20; ++i) held.push_back(take(*pool, 64));
        held.clear();
        EXPECT_EQ(pool->stats().idle_buffers, kept);
        EXPECT_EQ(pool->stats().idle_bytes, 64u * kept);
    }
}

TEST(BufferPool, FreesTheLongestIdleWhenItsBytesAreExceeded) {
    const BufferPool pool(16, 1000);
    {
        const PooledBuffer a = take(pool, 512), b = take(pool, 384), c = take(pool, 320);
    }  // c comes back first, then b, then a
    EXPECT_EQ(pool.stats().idle_bytes, 512u + 384);
    take(pool, 320);
    EXPECT_EQ(pool.stats().reuses, 0);
}

TEST(BufferPool, DoesNotKeepABufferLargerThanItsBytes) {
    const BufferPool pool(16, 1000);
    take(pool, 2000);
    EXPECT_EQ(pool.stats().idle_buffers, 0);
}

TEST(BufferPool, ResetFreesWhatIsIdleAndNothingElse) {
    BufferPool pool;
    PooledBuffer held = take(pool, 128);
    take(pool, 64);
    pool.reset();
    EXPECT_EQ(pool.stats().idle_buffers, 0);
    EXPECT_EQ(pool.stats().live_bytes, 128u);
    held.release();
    EXPECT_EQ(pool.stats().idle_buffers, 1);
}

TEST(BufferPool, GoesToTheSystemForRunsThatWantNoReuse) {
    const BufferPool pool;
    take(pool, 64);
    take(pool, 64, false);
    EXPECT_EQ(pool.stats().allocations, 2);
    EXPECT_EQ(pool.stats().idle_buffers, 1);
}

TEST(BufferPool, MayDieBeforeItsBuffers) {
    PooledBuffer buffer;
    {
        const BufferPool pool;
        buffer = take(pool, 64);
    }
    buffer.data()[63] = std::byte{1};
}

TEST(BufferPool, ReportsARequestThatNoMachineCanServe) {
    const auto taken = PooledBuffer::take(BufferPool(), SIZE_MAX - 10, "the activations");
    ASSERT_FALSE(taken.ok());
    EXPECT_EQ(taken.error().code, Code::out_of_memory);
    EXPECT_NE(taken.error().message.find("the activations"), std::string::npos);
}

TEST(BufferPool, HandsOutNoMoreThanItsLimitTogether) {
    const BufferPool pool(16, 1 << 20, 256);
    PooledBuffer held = take(pool, 128);
    const auto refused = PooledBuffer::take(pool, 129, "the activations");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::out_of_memory);
    EXPECT_EQ(refused.error().message,
              "192 bytes for the activations are too many: 128 are in use of the 256 that may be");
    EXPECT_EQ(pool.stats().live_bytes, 128u);
    take(pool, 128);
    EXPECT_TRUE(PooledBuffer::take(pool, 128, "more", false).ok()) << "what came back may be taken again";
    held.release();
    EXPECT_TRUE(PooledBuffer::take(pool, 256, "all of it").ok());
}

TEST(BufferPool, FreesWhatIsIdleBeforeBothTogetherPassItsLimit) {
    const BufferPool pool(16, 1 << 20, 1024);
    { const PooledBuffer a = take(pool, 256), b = take(pool, 320); }  // b comes back first
    EXPECT_EQ(pool.stats().idle_bytes, 576u);
    const PooledBuffer held = take(pool, 640);
    EXPECT_EQ(pool.stats().idle_bytes, 256u) << "the longest idle goes, and no more than has to";
    EXPECT_LE(pool.stats().peak_bytes, 1024u);
}

TEST(BufferPool, ServesConcurrentThreads) {
    const BufferPool pool(4);
    std::vector<std::thread> threads;
    std::atomic<int> clashes = 0;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 2000; ++i) {
                PooledBuffer b = take(pool, static_cast<std::size_t>(64 * (1 + i % 3)));
                std::fill(b.data(), b.data() + b.bytes(), std::byte(t));
                clashes += std::count(b.data(), b.data() + b.bytes(), std::byte(t)) !=
                           static_cast<std::ptrdiff_t>(b.bytes());
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(clashes, 0);
    EXPECT_EQ(pool.stats().live_bytes, 0u);
    EXPECT_EQ(pool.stats().requests, 8000);
    EXPECT_LE(pool.stats().allocations, 8000);
}

}  // namespace
}  // namespace headrace
