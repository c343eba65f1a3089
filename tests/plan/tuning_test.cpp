#include "plan/tuning.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace headrace {
namespace {

using ::testing::HasSubstr;

Tuning two_choices() {
    Tuning tuning;
    tuning.set("matmul f32[2, 3]", {.implementation = "ggml"});
    tuning.set("add f32[2, 3]", {.implementation = "zip_f32", .one_thread = true});
    return tuning;
}

TEST(Tuning, ReadsWhatItWrites) {
    const Tuning read = Tuning::parse(two_choices().text()).value();
    ASSERT_NE(read.find("matmul f32[2, 3]"), nullptr);
    EXPECT_EQ(*read.find("matmul f32[2, 3]"), (NodeChoice{"ggml", false, "matmul f32[2, 3]"}));
    EXPECT_EQ(*read.find("add f32[2, 3]"), (NodeChoice{"zip_f32", true, "add f32[2, 3]"}));
    EXPECT_EQ(read.find("add f32[2, 4]"), nullptr);
    EXPECT_EQ(read.text(), two_choices().text());
}

TEST(Tuning, ForgetsWhatIsErased) {
    Tuning tuning = two_choices();
    tuning.erase("add f32[2, 3]");
    EXPECT_EQ(tuning.find("add f32[2, 3]"), nullptr);
    tuning.erase("matmul f32[2, 3]");
    EXPECT_TRUE(tuning.empty());
    EXPECT_TRUE(Tuning::parse(tuning.text()).value().empty());
}

TEST(Tuning, NoticesEveryBitThatIsFlippedAndEveryCut) {
    const std::string whole = two_choices().text();
    for (std::size_t i = 0; i < whole.size(); ++i) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 8));
        EXPECT_FALSE(Tuning::parse(damaged).ok()) << i;
        EXPECT_FALSE(Tuning::parse(whole.substr(0, i)).ok()) << i;
    }
}

TEST(Tuning, SaysWhatIsWrong) {
    const std::string whole = two_choices().text();
    std::string other = whole;
    other.insert(other.find('\n') + 1, "9.9 ");
    EXPECT_THAT(Tuning::parse(other).error().message, HasSubstr("it is for '9.9 "));
    EXPECT_THAT(Tuning::parse(whole + " ").error().message, HasSubstr("its checksum is wrong"));
    EXPECT_THAT(Tuning::parse("{}").error().message, HasSubstr("it does not begin with 'headrace tuning 1'"));
}

TEST(Tuning, IsAFileForEachMachineInAFolderThatIsMadeForIt) {
    const TemporaryFolder temporary;
    const auto folder = temporary.path() / "tuning";
    const std::string path = tuning_file((folder / "deep").string());
    EXPECT_TRUE(read_tuning(path).value().empty());
    ASSERT_TRUE(write_tuning(path, two_choices()).ok());
    EXPECT_EQ(read_tuning(path).value().text(), two_choices().text());
    std::filesystem::remove_all(folder);
    std::ofstream(folder) << "a file";
    EXPECT_EQ(write_tuning(path, two_choices()).error().code, Code::io);
}

}  // namespace
}  // namespace headrace
