#include "llm/blocks/file_hash.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "temporary_folder.h"

namespace headrace::llm {
namespace {

ContentHash hash_of(const std::string& content) { return content_hash(content.data(), content.size()); }

TEST(FileHash, IsOfTheContents) {
    const TemporaryFolder temporary;
    const std::string file = temporary.write("model", "some weights");
    EXPECT_EQ(file_hash(file, temporary / "nowhere").value(), hash_of("some weights"));
    EXPECT_EQ(file_hash(temporary / "none", temporary / "nowhere").error().code, Code::not_found);
}

TEST(FileHash, IsRememberedOnceTheFileHasSettledAndOnlyAsLongAsItIsTheSame) {
    const TemporaryFolder temporary;
    const std::string file = temporary.write("model", "some weights"), folder = temporary / "cache";
    std::filesystem::create_directory(folder);
    const auto remembered = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
    EXPECT_TRUE(file_hash(file, folder).ok());
    EXPECT_EQ(remembered(), 0) << "what was just written may still change without another time";
    std::this_thread::sleep_for(std::chrono::milliseconds(3100));
    EXPECT_TRUE(file_hash(file, folder).ok());
    ASSERT_EQ(remembered(), 1);
    const std::string entry = std::filesystem::directory_iterator(folder)->path();
    EXPECT_EQ(file_hash(file, folder).value(), hash_of("some weights"));
    std::filesystem::resize_file(entry, 20);
    EXPECT_EQ(file_hash(file, folder).value(), hash_of("some weights")) << "a damaged entry is none";
    temporary.write("model", "same length!");
    EXPECT_EQ(file_hash(file, folder).value(), hash_of("same length!"));
}

}  // namespace
}  // namespace headrace::llm
