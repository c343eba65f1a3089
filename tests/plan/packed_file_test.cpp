#include "plan/packed_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "temporary_folder.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

const PackedFileKey kKey{{1, 2}, "0.1 1 AVX2"};

struct PackedFileTest : ::testing::Test {
    TemporaryFolder folder;
    std::string path = folder / "weights.packed";
    std::vector<std::byte> first{100, std::byte{1}}, second{3, std::byte{2}};
    std::map<ContentHash, std::span<const std::byte>> forms{{{1, 0}, first}, {{2, 0}, second}};

    void SetUp() override { ASSERT_TRUE(write_packed_file(path, kKey, forms).ok()); }

    std::string content() const {
        std::ifstream stream(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void replace(const std::string& bytes) const { std::ofstream(path, std::ios::binary) << bytes; }
    std::string error(const PackedFileKey& key = kKey) const {
        const auto file = PackedFile::open(path, key);
        return file.ok() ? "" : file.error().message;
    }
};

TEST_F(PackedFileTest, GivesBackWhatWasWrittenAtAlignedAddresses) {
    const auto file = PackedFile::open(path, kKey).value();
    for (const auto& [use, form] : forms) {
        const auto found = file->find(use, form.size()).value();
        ASSERT_TRUE(found);
        EXPECT_TRUE(std::equal(found->begin(), found->end(), form.begin(), form.end()));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found->data()) % kPackedAlignment, 0u);
    }
    EXPECT_FALSE(file->find({3, 0}, 3).value());
}

TEST_F(PackedFileTest, NoticesEveryBitThatIsFlipped) {
    const std::string whole = content();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
        replace(damaged);
        const auto file = PackedFile::open(path, kKey);
        if (!file.ok()) continue;
        for (const auto& [use, form] : forms) {
            const auto found = file.value()->find(use, form.size());
            // Zeros between two forms belong to neither.
            if (found.ok()) {
                EXPECT_TRUE(std::equal(form.begin(), form.end(), found.value()->begin())) << i;
            }
        }
    }
}

TEST_F(PackedFileTest, SaysWhatIsWrong) {
    const std::string whole = content();
    EXPECT_THAT(error({{1, 3}, kKey.machine}), HasSubstr("it is another model's"));
    EXPECT_THAT(error({kKey.model, "0.1 1 AVX3"}), HasSubstr("it is for '0.1 1 AVX2', this is '0.1 1 AVX3'"));
    replace(whole.substr(0, whole.size() - 1));
    EXPECT_THAT(error(),
                HasSubstr(fmt::format("it has {} bytes and should have {}", whole.size() - 1, whole.size())));
    replace(whole.substr(0, 127));
    EXPECT_THAT(error(), HasSubstr("it has 127 bytes, less than its header of 128"));
    replace("no such thing" + whole);
    EXPECT_THAT(error(), HasSubstr("it is no file of packed weights"));
    replace("");
    EXPECT_THAT(error(), HasSubstr("it has 0 bytes"));
    std::string damaged = whole;
    damaged.back() = 9;
    replace(damaged);
    EXPECT_THAT(PackedFile::open(path, kKey).value()->find({2, 0}, 3).error().message,
                HasSubstr("the checksum of the 3 bytes at 384 is wrong"));
    replace(whole);
    EXPECT_THAT(PackedFile::open(path, kKey).value()->find({2, 0}, 4).error().message,
                HasSubstr("an entry takes 3 bytes and should take 4"));
}

TEST_F(PackedFileTest, ReadersKeepTheFileThatAWriterReplaces) {
    const auto file = PackedFile::open(path, kKey).value();
    const std::vector<std::byte> others(100, std::byte{7});
    forms[{1, 0}] = others;
    ASSERT_TRUE(write_packed_file(path, kKey, forms).ok());
    EXPECT_EQ(file->find({1, 0}, 100).value()->front(), std::byte{1});
    EXPECT_EQ(PackedFile::open(path, kKey).value()->find({1, 0}, 100).value()->front(), std::byte{7});
}

TEST_F(PackedFileTest, WritersAtTheSameTimeLeaveAWholeFile) {
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i)
        writers.emplace_back([&] {
            for (int turn = 0; turn < 25; ++turn) {
                EXPECT_TRUE(write_packed_file(path, kKey, forms).ok());
                EXPECT_EQ(error(), "");
            }
        });
    for (std::thread& writer : writers) writer.join();
    const auto left = std::filesystem::directory_iterator(folder.path());
    EXPECT_EQ(std::distance(begin(left), end(left)), 1);
}

TEST_F(PackedFileTest, AFolderThatCannotBeWrittenIsAnError) {
    replace("a file");
    const Status status = write_packed_file(path + "/inside", kKey, forms);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::io);
}

}  // namespace
}  // namespace headrace
