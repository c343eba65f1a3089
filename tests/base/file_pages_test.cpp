#include "base/file_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "base/reading_progress.h"

namespace headrace {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

/// A mapped temporary file of kBytes.
struct Mapping {
    explicit Mapping(int rights) {
        std::FILE* file = std::tmpfile();
        const std::vector<char> content(kBytes, 7);
        std::fwrite(content.data(), 1, kBytes, file);
        std::fflush(file);
        void* at = mmap(nullptr, kBytes, rights, MAP_PRIVATE, fileno(file), 0);
        std::fclose(file);
        bytes = {static_cast<std::byte*>(at), kBytes};
    }
    ~Mapping() { munmap(bytes.data(), kBytes); }

    std::span<std::byte> bytes;

    /// KiB of it that count as this process's memory.
    long resident() const {
        std::ifstream smaps("/proc/self/smaps");
        char start[32];
        std::snprintf(start, sizeof(start), "%lx-", reinterpret_cast<unsigned long>(bytes.data()));
        bool is_here = false;
        for (std::string line; std::getline(smaps, line);) {
            if (line.starts_with(start)) is_here = true;
            if (is_here && line.starts_with("Rss:")) return std::strtol(line.c_str() + 4, nullptr, 10);
        }
        return -1;
    }
    bool read() const {
        for (std::byte b : bytes)
            if (b != std::byte{7}) return false;
        return true;
    }
};

TEST(FilePages, GivesBackPagesOfAFileThatCanBeReadAgain) {
    const Mapping file(PROT_READ);
    ASSERT_TRUE(file.read());
    ASSERT_EQ(file.resident(), 1024);
    const FilePages pages;
    EXPECT_TRUE(pages.contains(file.bytes));
    pages.give_back(file.bytes.subspan(1));  // the page of which a byte is left stays
    EXPECT_EQ(file.resident(), 4);
    EXPECT_TRUE(file.read());
    EXPECT_EQ(file.resident(), 1024);
}

TEST(FilePages, GivesBackWhatAReaderSaysItHasRead) {
    const Mapping file(PROT_READ), other(PROT_READ);
    const FilePages pages;
    ASSERT_TRUE(file.read() && other.read());
    ReadingProgress::was_read(file.bytes);  // nobody wants to know
    EXPECT_EQ(file.resident(), 1024);
    {
        const ReadingProgress progress(pages, file.bytes);
        ReadingProgress::was_read(file.bytes.first(kBytes / 2));
        ReadingProgress::was_read(other.bytes);
    }
    EXPECT_EQ(file.resident(), 512);
    EXPECT_EQ(other.resident(), 1024);
    ReadingProgress::was_read(file.bytes);
    EXPECT_EQ(file.resident(), 512);
}

TEST(FilePages, GivesBackPagesThatAreLocked) {
    const Mapping file(PROT_READ);
    if (mlock(file.bytes.data(), kBytes) != 0) GTEST_SKIP() << "this process may not lock memory";
    FilePages().give_back(file.bytes);
    EXPECT_EQ(file.resident(), 0);
    EXPECT_TRUE(file.read());
}

TEST(FilePages, LeavesMemoryThatIsNoFileOrCouldHaveBeenWritten) {
    std::vector<std::byte> heap(kBytes, std::byte{7});
    const Mapping writable(PROT_READ | PROT_WRITE);
    writable.bytes[5000] = std::byte{9};
    const FilePages pages;
    EXPECT_FALSE(pages.contains(heap));
    EXPECT_FALSE(pages.contains(writable.bytes));
    pages.give_back(heap);
    pages.give_back(writable.bytes);
    EXPECT_EQ(heap, std::vector<std::byte>(kBytes, std::byte{7}));
    EXPECT_EQ(writable.bytes[5000], std::byte{9});
}

TEST(FilePages, KnowsOnlyMappingsThatWereThere) {
    const FilePages before;
    const std::vector<std::byte> heap(kBytes);
    EXPECT_FALSE(before.contains(heap));  // it asks the system
    const Mapping file(PROT_READ);
    EXPECT_FALSE(before.contains(file.bytes));
    EXPECT_FALSE(FilePages().contains({file.bytes.data(), kBytes + (std::size_t{1} << 40)}));
}

TEST(FilePages, KnowsWhatMappedFileHasForAsLongAsItHasIt) {
    const std::string path = ::testing::TempDir() + "file_pages_test.bin";
    std::ofstream(path, std::ios::binary) << std::string(kBytes, 7);
    const FilePages pages;
    const std::vector<std::byte> heap(kBytes);
    EXPECT_FALSE(pages.contains(heap));  // the system is asked before
    auto file = MappedFile::open(path).value();
    const auto bytes = file->bytes();
    EXPECT_TRUE(pages.contains(bytes));
    EXPECT_TRUE(pages.contains(bytes.subspan(5000)));
    EXPECT_FALSE(pages.contains({bytes.data(), bytes.size() + (std::size_t{1} << 40)}));
    file.reset();
    EXPECT_FALSE(pages.contains(bytes));
    std::remove(path.c_str());
}

}  // namespace
}  // namespace headrace
