#include "encoder/waiting_texts.h"

#include <gmock/gmock.h>

#include "encoder/encoder_threads.h"

namespace headrace {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

/// The lengths of the texts in a run. index is the length in these tests.
std::vector<std::size_t> lengths(const std::vector<WaitingText>& texts) {
    std::vector<std::size_t> all;
    for (const WaitingText& text : texts) all.push_back(text.index);
    return all;
}

WaitingTexts waiting(const std::vector<std::size_t>& texts) {
    WaitingTexts all;
    for (const std::size_t length : texts) all.add(static_cast<std::int64_t>(length), {nullptr, length, 0});
    return all;
}

TEST(WaitingTexts, PutsTextsOfOneLengthIntoOneRun) {
    WaitingTexts all = waiting({9, 9, 9, 9});
    EXPECT_THAT(lengths(all.take()), ElementsAre(9, 9, 9, 9));
    EXPECT_EQ(all.size(), 0u);
    EXPECT_TRUE(all.take().empty());
}

TEST(WaitingTexts, LeavesTextsApartWhosePaddingCostsMoreThanARun) {
    WaitingTexts all = waiting({8, 40});
    EXPECT_THAT(lengths(all.take()), ElementsAre(8));
    EXPECT_THAT(lengths(all.take()), ElementsAre(40));
    WaitingTexts near = waiting({8, 10});
    EXPECT_THAT(lengths(near.take()), ElementsAre(8, 10));
}

TEST(WaitingTexts, TakesNoMoreTokensThanARunHas) {
    WaitingTexts all = waiting(std::vector<std::size_t>(100, 64));
    EXPECT_EQ(all.take().size(), 4u);
    WaitingTexts long_ones = waiting({500, 500});
    EXPECT_EQ(long_ones.take().size(), 1u) << "a text longer than that has a run of its own";
}

TEST(WaitingTexts, TakesNumbersOfTextsThatPlansAreKeptFor) {
    WaitingTexts all = waiting(std::vector<std::size_t>(7, 10));
    EXPECT_EQ(all.take().size(), 6u);
    EXPECT_EQ(all.take().size(), 1u);
}

TEST(WaitingTexts, ServesTheTextWhoseTurnItIs) {
    WaitingTexts all;
    for (int i = 0; i < 60; ++i) all.add(12, {nullptr, 12, 3});
    all.add(10, {nullptr, 10, 1});
    const std::vector<WaitingText> first = all.take();
    EXPECT_EQ(first.front().index, 10u) << "the others fill its run up";
    EXPECT_GT(first.size(), 1u);
    EXPECT_EQ(all.turn(), 1u);
    all.take();
    EXPECT_EQ(all.turn(), 3u);
}

TEST(WaitingTexts, NeverLosesAText) {
    WaitingTexts all;
    for (std::size_t i = 0; i < 1000; ++i) {
        const std::size_t length = 1 + i * 7919 % 300;
        all.add(static_cast<std::int64_t>(length), {nullptr, length, i / 8});
    }
    std::size_t taken = 0;
    std::uint64_t turn = 0;
    while (all.size() > 0) {
        const std::vector<WaitingText> texts = all.take();
        ASSERT_FALSE(texts.empty());
        ASSERT_GE(texts.front().turn, turn) << "in turn";
        turn = texts.front().turn;
        taken += texts.size();
    }
    EXPECT_EQ(taken, 1000u);
}

TEST(WaitingTexts, TakesOutWhatNobodyWaitsFor) {
    WaitingTexts all;
    const auto gone = std::make_shared<TextCall>(), kept = std::make_shared<TextCall>();
    for (std::size_t i = 0; i < 4; ++i) all.add(5, {i % 2 ? gone : kept, i, 0});
    all.remove_if([&](const WaitingText& text) { return text.call == gone; });
    EXPECT_EQ(all.size(), 2u);
    for (const WaitingText& text : all.take()) EXPECT_EQ(text.call, kept);
}

TEST(RunLength, RoundsUpByLittle) {
    EXPECT_EQ(run_length(7, 512), 7);
    EXPECT_EQ(run_length(33, 512), 34);
    EXPECT_EQ(run_length(129, 512), 136);
    EXPECT_EQ(run_length(509, 510), 510) << "no longer than the model's positions";
    for (std::int64_t tokens = 1; tokens < 2000; ++tokens) {
        EXPECT_GE(run_length(tokens, 4096), tokens);
        EXPECT_LE(run_length(tokens, 4096), tokens + tokens / 16 + 1);
    }
}

}  // namespace
}  // namespace headrace
