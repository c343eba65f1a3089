#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace headrace {
namespace {

std::string temporary_path(const std::string& name) {
    return ::testing::TempDir() + "headrace_mapped_" + name;
}

TEST(MappedFile, ShowsTheBytesOfAFile) {
    const std::string path = temporary_path("text");
    std::ofstream(path) << "forty-two";
    const auto file = MappedFile::open(path).value();
    std::filesystem::remove(path);
    const auto bytes = file->bytes();
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "forty-two");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0U);
}

TEST(MappedFile, OpensAnEmptyFile) {
    const std::string path = temporary_path("empty");
    std::ofstream(path).flush();
    const auto file = MappedFile::open(path).value();
    std::filesystem::remove(path);
    EXPECT_TRUE(file->bytes().empty());
    EXPECT_NE(file->bytes().data(), nullptr);
}

TEST(MappedFile, RefusesWhatIsNoRegularFile) {
    const std::string pipe = temporary_path("pipe");
    std::filesystem::remove(pipe);
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    for (const std::string& path :
         {std::string("/no/such/file"), ::testing::TempDir(), pipe, std::string()}) {
        const auto file = MappedFile::open(path);
        ASSERT_FALSE(file.ok()) << path;
        EXPECT_EQ(file.error().code, Code::io);
    }
    std::filesystem::remove(pipe);
}

}  // namespace
}  // namespace headrace
