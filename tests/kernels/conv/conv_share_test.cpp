#include "kernels/conv/conv_share.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace::kernels {
namespace {

// The most that a thread computes, in pixels times channels.
size_t largest_share(const ConvExtent& extent, int nth) {
    size_t largest = 0;
    for (int ith = 0; ith < nth; ++ith) {
        const ConvShare s = conv_share(extent, ith, nth);
        largest = std::max(largest, (s.pixel_end - s.pixel) * (s.out_end - s.out));
    }
    return largest;
}

TEST(ConvShare, CoversEveryPixelAndChannelOnce) {
    for (const size_t pixels : {1u, 5u, 9u, 36u, 577u})
        for (const size_t channels : {1u, 16u, 17u, 64u, 250u})
            for (const int nth : {1, 2, 3, 4, 7, 16, 61}) {
                SCOPED_TRACE(::testing::Message() << pixels << " " << channels << " " << nth);
                std::vector<int> seen(pixels * channels);
                for (int ith = 0; ith < nth; ++ith) {
                    const ConvShare s = conv_share({pixels, channels, 64}, ith, nth);
                    for (size_t p = s.pixel; p < s.pixel_end; ++p)
                        for (size_t c = s.out; c < s.out_end; ++c) ++seen.at(p * channels + c);
                }
                EXPECT_EQ(seen, std::vector<int>(pixels * channels, 1));
            }
}

TEST(ConvShare, OfChannelsBeginsAtPanels) {
    for (int ith = 0; ith < 4; ++ith) EXPECT_EQ(conv_share({4, 250, 64}, ith, 4).out % kFilterPanel, 0u);
}

TEST(ConvShare, DividesFewChannelsToo) { EXPECT_EQ(largest_share({36, 64, 384}, 2), 36u * 64 / 2); }

TEST(ConvShare, OfFewPixelsReadsEachFilterOnce) {
    for (int ith = 0; ith < 2; ++ith) {
        const ConvShare s = conv_share({9, 960, 160}, ith, 2);
        EXPECT_EQ(s.pixel_end - s.pixel, 9u);
        EXPECT_EQ(s.out_end - s.out, 480u);
    }
}

TEST(ConvShare, OfManyPixelsLeavesThoseOfOneCoreTogether) {
    const ConvShare s = conv_share({2304, 96, 16}, 1, 2);
    EXPECT_EQ(s.pixel, 1152u);
    EXPECT_EQ(s.out_end - s.out, 96u);
}

TEST(ConvShare, ByBothKeepsManyThreadsBusy) {
    EXPECT_LE(largest_share({36, 96, 576}, 16), 36u * 96 / 16 * 3 / 2);
}

}  // namespace
}  // namespace headrace::kernels
