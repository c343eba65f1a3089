#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "temporary_folder.h"

namespace headrace {
namespace {

TEST(MappedFile, ShowsTheBytesOfAFile) {
    const TemporaryFolder folder;
    const std::string path = folder.write("text", "forty-two");
    const auto file = MappedFile::open(path).value();
    std::filesystem::remove(path);
    const auto bytes = file->bytes();
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "forty-two");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0U);
}

TEST(MappedFile, OpensAnEmptyFile) {
    const TemporaryFolder folder;
    const std::string path = folder.write("empty", "");
    const auto file = MappedFile::open(path).value();
    std::filesystem::remove(path);
    EXPECT_TRUE(file->bytes().empty());
    EXPECT_NE(file->bytes().data(), nullptr);
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
    const TemporaryFolder folder;
    const std::string pipe = folder / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& path :
         {std::string("/no/such/file"), ::testing::TempDir(), pipe, std::string()}) {
        const auto file = MappedFile::open(path);
        ASSERT_FALSE(file.ok()) << path;
        EXPECT_EQ(file.error().code, Code::io);
    }
}

}  // namespace
}  // namespace headrace
