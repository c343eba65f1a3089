// Several processes at once in one folder, and some that are killed while they write.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "llm/blocks/folder_of_blocks.h"

namespace headrace::llm {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlocks = 4;

std::vector<TestText> shared_texts() {
    std::vector<TestText> made;
    for (int i = 0; i < 30; ++i) made.emplace_back(i + 1, kBlocks, i % 4);
    return made;
}

/// A process; its exit status is what `work` returns.
pid_t start_process(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    return child;
}

/// Writes and reads at random for that long; the number of blocks that were wrong or could not be written.
int work_on(const std::string& path, std::uint64_t limit, std::uint32_t seed, milliseconds time) {
    const std::vector<TestText> all = shared_texts();
    BlockFolder folder(path, limit);
    std::mt19937 random(seed);
    int wrong = 0;
    for (const auto end = Clock::now() + time; Clock::now() < end;) {
        const TestText& text = all[random() % all.size()];
        const std::size_t index = random() % kBlocks;
        if (random() % 2)
            wrong += !text.write(folder, index).ok();
        else
            wrong += !text.is_sound(folder, index);
    }
    return std::min(wrong, 100);
}

TEST(BlockFolderProcesses, EightAtOnceReadWhatIsRightWithinTheLimit) {
    const TemporaryFolder temporary;
    const std::string path = temporary / "cache";
    constexpr std::uint64_t kLimit = 20'000;  // a third of what all texts take
    std::vector<pid_t> children;
    for (std::uint32_t i = 0; i < 8; ++i)
        children.push_back(start_process([&] { return work_on(path, kLimit, i, milliseconds(1500)); }));
    std::size_t looks = 0, most = 0;
    for (const auto end = Clock::now() + milliseconds(1500); Clock::now() < end; ++looks) {
        std::this_thread::sleep_for(milliseconds(5));
        most = std::max<std::size_t>(most, bytes_of_blocks(path));
    }
    for (const pid_t child : children) {
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status));
        EXPECT_EQ(WEXITSTATUS(status), 0) << "blocks that were wrong, or could not be written";
    }
    EXPECT_GT(looks, 5u);
    EXPECT_GT(most, kLimit / 2);
    EXPECT_LE(most, kLimit);
    EXPECT_EQ(files_ending(path, ".tmp"), 0u);
}

TEST(BlockFolderProcesses, ThatAreKilledWhileTheyWriteLeaveNothingWrong) {
    const TemporaryFolder temporary;
    const std::string path = temporary / "cache";
    constexpr std::uint64_t kLimit = 20'000;
    const std::vector<TestText> all = shared_texts();
    std::mt19937 random(1);
    std::size_t found = 0;
    for (std::uint32_t round = 0; round < 40; ++round) {
        const pid_t child = start_process([&] { return work_on(path, kLimit, round, milliseconds(60'000)); });
        std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 20'000));
        ASSERT_EQ(kill(child, SIGKILL), 0);
        ASSERT_EQ(waitpid(child, nullptr, 0), child);
        BlockFolder folder(path, kLimit);
        for (const TestText& text : all)
            for (std::size_t i = 0; i < kBlocks; ++i) {
                ASSERT_TRUE(text.is_sound(folder, i)) << "round " << round;
                found += folder.has(text.keys[i]);
            }
        ASSERT_LE(bytes_of_blocks(path), kLimit);
    }
    EXPECT_GT(found, 100u);
    // The next one that counts removes what they left.
    std::filesystem::resize_file(path + "/lock", 0);
    BlockFolder folder(path, kLimit);
    ASSERT_TRUE(TestText(99, 2, 9).write(folder, 0).ok());
    EXPECT_EQ(files_ending(path, ".tmp"), 0u);
    EXPECT_EQ(folder.bytes(), bytes_of_blocks(path));
}

TEST(BlockFolderProcesses, ReadABlockThatIsRemovedMeanwhileToItsEnd) {
    const TemporaryFolder temporary;
    const std::string path = temporary / "cache";
    const std::vector<TestText> all = shared_texts();
    const pid_t remover = start_process([&] {
        BlockFolder folder(path, 1 << 20);
        for (const auto end = Clock::now() + milliseconds(600); Clock::now() < end;)
            for (const TestText& text : all)
                for (std::size_t i = 0; i < kBlocks; ++i) {
                    if (!text.write(folder, i).ok()) return 1;
                    folder.remove(text.keys[i]);
                }
        return 0;
    });
    const BlockFolder folder(path, 1 << 20);
    std::size_t wrong = 0, read = 0;
    for (const auto end = Clock::now() + milliseconds(600); Clock::now() < end;)
        for (const TestText& text : all)
            for (std::size_t i = 0; i < kBlocks; ++i, ++read) wrong += !text.is_sound(folder, i);
    int status = -1;
    ASSERT_EQ(waitpid(remover, &status, 0), remover);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(wrong, 0u) << "of " << read;
}

}  // namespace
}  // namespace headrace::llm
