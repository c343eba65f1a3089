#include "llm/blocks/block_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <memory>
#include <random>

#include "llm/blocks/folder_of_blocks.h"

namespace headrace::llm {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kPlenty = 1 << 20;

class BlockFolderTest : public testing::Test {
protected:
    const TemporaryFolder temporary;
    const std::string path = temporary / "cache";
    BlockFolder folder{path, kPlenty};
    const TestText text{1, 6};

    void write_all() {
        for (std::size_t i = 0; i < text.keys.size(); ++i) {
            const Status written = text.write(folder, i);
            ASSERT_TRUE(written.ok()) << written.error().message;
        }
    }
    std::string file(std::size_t index) const { return path + "/" + file_name(text.keys[index]); }
    void set_age(std::size_t index, int seconds) const {
        const timespec times[2] = {{1'000'000 - seconds, 0}, {1'000'000 - seconds, 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, file(index).c_str(), times, 0), 0);
    }
};

TEST_F(BlockFolderTest, GivesWhatWasWritten) {
    EXPECT_EQ(text.read(folder, 0).error().code, Code::not_found);
    write_all();
    for (std::size_t i = 0; i < text.keys.size(); ++i) {
        EXPECT_TRUE(folder.has(text.keys[i]));
        const auto block = text.read(folder, i);
        ASSERT_TRUE(block.ok()) << block.error().message;
        EXPECT_TRUE(TestText::is_right(block.value(), text.keys[i]));
    }
    EXPECT_EQ(folder.bytes(), bytes_of_blocks(path));
    EXPECT_EQ(files_ending(path, ".tmp"), 0u);
}

TEST_F(BlockFolderTest, IsForItsOwnerAlone) {
    write_all();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    ASSERT_EQ(stat(file(0).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0077, 0u);
}

TEST_F(BlockFolderTest, RemovesADamagedBlockWhenItIsRead) {
    write_all();
    std::filesystem::resize_file(file(1), 150);
    std::fstream(file(2), std::ios::in | std::ios::out | std::ios::binary).seekp(130).put('?');
    std::ofstream(file(3), std::ios::trunc);
    for (std::size_t i = 1; i <= 3; ++i) {
        const auto block = text.read(folder, i);
        ASSERT_FALSE(block.ok());
        EXPECT_EQ(block.error().code, Code::invalid_argument);
        EXPECT_THAT(block.error().message, HasSubstr(file(i)));
        EXPECT_EQ(text.read(folder, i).error().code, Code::not_found);
    }
    EXPECT_TRUE(text.is_sound(folder, 0) && text.is_sound(folder, 4));
}

TEST_F(BlockFolderTest, RefusesWhatIsNoFile) {
    write_all();
    std::filesystem::remove(file(0));
    std::filesystem::create_directory(file(0));
    std::filesystem::remove(file(1));
    ASSERT_EQ(mkfifo(file(1).c_str(), 0600), 0);
    std::filesystem::remove(file(2));
    std::filesystem::create_symlink("/dev/zero", file(2));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(text.read(folder, i).error().code, Code::io) << i;
}

TEST_F(BlockFolderTest, KeepsWhatWasUsedLast) {
    write_all();
    for (std::size_t i = 0; i < 6; ++i) set_age(i, 100);
    const TestText other(2, 6, 7);
    BlockFolder small(path, bytes_of_blocks(path) + 100);
    folder.touch(std::span(text.keys).first(2));
    ASSERT_TRUE(other.write(small, 0).ok());
    EXPECT_TRUE(folder.has(text.keys[0]) && folder.has(text.keys[1]));
    EXPECT_FALSE(folder.has(text.keys[5])) << "of those that are as old the one at the text's end";
    EXPECT_TRUE(folder.has(other.keys[0]));
}

TEST_F(BlockFolderTest, FirstGivesBackWhatWasUsedInTheFuture) {
    write_all();
    const int ahead =
        1'000'000 - static_cast<int>(std::time(nullptr)) - 7200;  // the clock was two hours fast
    set_age(1, ahead);
    const TestText other(2, 6, 7);
    BlockFolder small(path, bytes_of_blocks(path) + 100);
    ASSERT_TRUE(other.write(small, 0).ok());
    EXPECT_FALSE(folder.has(text.keys[1]));
    EXPECT_TRUE(folder.has(text.keys[0]) && folder.has(other.keys[0]));
}

TEST_F(BlockFolderTest, NeverHasABlockThatIsYoungerThanThoseBeforeIt) {
    write_all();
    for (std::size_t i = 0; i < 6; ++i) set_age(i, 100 + static_cast<int>(i));
    const TestText longer = [&] {
        TestText made = text;
        made.tokens.insert(made.tokens.end(), TestText::kSize, 77);
        made.keys = block_keys(made.origin, made.tokens);
        return made;
    }();
    ASSERT_TRUE(longer.write(folder, 6).ok());
    std::filesystem::file_time_type before = std::filesystem::file_time_type::max();
    for (const BlockKey& key : longer.keys) {
        const auto time = std::filesystem::last_write_time(path + "/" + file_name(key));
        EXPECT_LE(time, before);
        before = time;
    }
}

TEST_F(BlockFolderTest, WritesNothingBeyondItsLimit) {
    BlockFolder none(path, 0), tiny(path, 100);
    EXPECT_TRUE(none.is_read_only());
    EXPECT_EQ(text.write(none, 0).error().code, Code::unsupported);
    EXPECT_EQ(text.write(tiny, 0).error().code, Code::unsupported);
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(BlockFolderTest, CountsAnewWhenTheCountIsDamagedOrGone) {
    write_all();
    const std::uint64_t bytes = bytes_of_blocks(path);
    const TestText other(2, 6, 7);
    for (const std::string& damage : {std::string("????????????????"), std::string()}) {
        std::ofstream(path + "/lock", std::ios::trunc) << damage;
        BlockFolder another(path, bytes);
        ASSERT_TRUE(other.write(another, 0).ok());
        EXPECT_LE(bytes_of_blocks(path), bytes);
        EXPECT_EQ(another.bytes(), bytes_of_blocks(path));
        folder.remove(other.keys[0]);
    }
}

TEST_F(BlockFolderTest, GoesOnWhenItIsEmptiedOrRemovedMeanwhile) {
    write_all();
    std::filesystem::remove_all(path);
    EXPECT_EQ(text.read(folder, 0).error().code, Code::not_found);
    write_all();
    EXPECT_TRUE(text.read(folder, 5).ok());
}

/// As a disk that is read-only is to a writer, also to root.
TEST_F(BlockFolderTest, IsReadWhereNothingCanBeWritten) {
    write_all();
    std::filesystem::remove(path + "/lock");
    std::filesystem::create_directory(path + "/lock");
    const TestText other(2, 6, 7);
    EXPECT_EQ(other.write(folder, 0).error().code, Code::io);
    EXPECT_FALSE(folder.prepare().ok());
    EXPECT_TRUE(text.read(folder, 3).ok());
    const std::string below_a_file = temporary.write("file", "x") + "/cache";
    BlockFolder nowhere(below_a_file, kPlenty);
    EXPECT_EQ(text.write(nowhere, 0).error().code, Code::io);
    EXPECT_EQ(text.read(nowhere, 0).error().code, Code::not_found);
}

/// The system's limit of a file's size ends a write in the middle, as a full disk does, and sends a signal
/// that ends the process unless it is held.
TEST_F(BlockFolderTest, LeavesNothingOfAWriteThatFailed) {
    write_all();
    const std::uint64_t before = folder.bytes();
    const TestText other(2, 6, 7);
    const pid_t child = fork();
    if (child == 0) {
        BlockFolder own(path, kPlenty);
        const rlimit limit{150, 150};
        setrlimit(RLIMIT_FSIZE, &limit);
        const Status written = other.write(own, 0);
        _exit(!written.ok() && written.error().code == Code::io && own.bytes() == before ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(files_ending(path, ".tmp"), 0u);
    EXPECT_FALSE(folder.has(other.keys[0]));
    EXPECT_TRUE(other.write(folder, 0).ok()) << "and goes on afterwards";
}

TEST_F(BlockFolderTest, RemovesWhatAKilledProcessHasLeftWhenItLooks) {
    write_all();
    const std::string left = temporary.path() / "cache" / (file_name(text.keys[0]) + ".0badcafe.tmp");
    std::ofstream(left) << std::string(5000, 'x');
    const std::uint64_t bytes = bytes_of_blocks(path) - 5000;
    BlockFolder small(path, bytes);
    ASSERT_TRUE(TestText(2, 6, 7).write(small, 0).ok());
    EXPECT_FALSE(std::filesystem::exists(left));
}

/// Random histories of several processes' folders: what is read is right, and the limit holds at each step.
TEST(BlockFolderHistories, HoldTheLimitAndNeverGiveAnotherText) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
        const TemporaryFolder temporary;
        const std::string path = temporary / "cache";
        std::mt19937 random(seed);
        const std::uint64_t limit = 3000 + random() % 20'000;
        std::vector<std::unique_ptr<BlockFolder>> folders;
        for (int i = 0; i < 3; ++i) folders.push_back(std::make_unique<BlockFolder>(path, limit));
        std::vector<TestText> texts;
        for (int i = 0; i < 12; ++i) texts.emplace_back(i + 1, 4, i % 3);
        std::size_t found = 0;
        for (int step = 0; step < 400; ++step) {
            BlockFolder& folder = *folders[random() % folders.size()];
            const TestText& text = texts[random() % texts.size()];
            const std::size_t index = random() % text.keys.size();
            const std::string file = path + "/" + file_name(text.keys[index]);
            std::error_code ignored;
            const std::uintmax_t size = folder.has(text.keys[index]) ? std::filesystem::file_size(file) : 0;
            switch (random() % 10) {
                case 0: folder.touch(text.keys); break;
                case 1:
                    if (size > 0) std::filesystem::resize_file(file, random() % size);
                    break;
                case 2:
                    if (size > 0)
                        std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
                            .seekp(static_cast<std::streamoff>(random() % size))
                            .put(static_cast<char>(random()));
                    break;
                case 3: std::filesystem::remove(file, ignored); break;
                case 4:
                    if (random() % 10 == 0) std::filesystem::remove(path + "/lock", ignored);
                    break;
                case 5:
                case 6: {
                    const auto block = text.read(folder, index);
                    found += block.ok();
                    if (block.ok()) {
                        ASSERT_TRUE(TestText::is_right(block.value(), text.keys[index])) << "seed " << seed;
                    }
                    break;
                }
                default: {
                    const Status written = text.write(folder, index);
                    ASSERT_TRUE(written.ok()) << "seed " << seed << ": " << written.error().message;
                }
            }
            ASSERT_LE(bytes_of_blocks(path), limit) << "seed " << seed << ", step " << step;
        }
        EXPECT_GT(found, 10u);
        EXPECT_EQ(files_ending(path, ".tmp"), 0u);
    }
}

}  // namespace
}  // namespace headrace::llm
