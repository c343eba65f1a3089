#include "doors/onnx/wire/message.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace headrace::onnx::wire {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> keys_of(Bytes bytes, bool* is_whole = nullptr) {
    std::vector<std::uint32_t> keys;
    Message message(bytes);
    while (message.next()) keys.push_back(message.field().key);
    if (is_whole) *is_whole = message.status().ok();
    return keys;
}

TEST(WireMessage, ReadsNumbersTextsAndFloatsInTheOrderOfTheFile) {
    const std::string bytes(
        "\x08\x96\x01\x12\x03"
        "abc\x1d\x00\x00\x80\x3f",
        13);
    Message message(bytes);
    ASSERT_TRUE(message.next());
    EXPECT_EQ(message.field().key, number_key(1));
    EXPECT_EQ(message.field().integer(), 150);
    ASSERT_TRUE(message.next());
    EXPECT_EQ(message.field().key, bytes_key(2));
    EXPECT_EQ(message.field().bytes, "abc");
    EXPECT_EQ(message.field().bytes.data(), bytes.data() + 5) << "texts show the file's memory";
    ASSERT_TRUE(message.next());
    EXPECT_EQ(message.field().key, float_key(3));
    EXPECT_EQ(message.field().real(), 1.0F);
    EXPECT_FALSE(message.next());
    EXPECT_TRUE(message.status().ok());
}

TEST(WireMessage, ReadsNegativeIntegersFromTenBytes) {
    const std::string bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
    Message message(bytes);
    ASSERT_TRUE(message.next());
    EXPECT_EQ(message.field().integer(), -1);
    EXPECT_EQ(message.field().small(), -1);
}

TEST(WireMessage, SkipsGroupsWithWhatTheyHold) {
    // Field 1 as a group that holds a group with a text, and field 2 behind it.
    EXPECT_THAT(keys_of("\x0b\x13\x1a\x02xy\x14\x0c\x10\x05"), ElementsAre(number_key(2)));
}

TEST(WireMessage, RefusesWhatIsCutOffOrNoMessage) {
    const std::vector<std::string> damaged{
        std::string("\x08", 1),                                               // a number without a value
        std::string("\x08\xff", 2),                                           // one that is cut off
        std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),  // one of eleven bytes
        std::string("\x12\x05"
                    "abc",
                    5),                                                   // a text longer than the rest
        std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11),  // of 2^64 - 1 bytes
        std::string("\x1d\x00\x00", 3),                                   // half a float
        std::string("\x0b\x10\x05", 3),                                   // a group without an end
        std::string("\x0b\x14", 2),                                       // one that ends another
        std::string("\x0c", 1),                                           // an end without a beginning
        std::string("\x0e\x00", 2),                                       // a form that there is not
        std::string("\x00\x00", 2),                                       // field 0
    };
    for (const std::string& bytes : damaged) {
        bool is_whole = true;
        keys_of(bytes, &is_whole);
        EXPECT_FALSE(is_whole) << testing::PrintToString(bytes);
    }
}

TEST(WireMessage, BoundsGroupsWithinOneAnother) {
    bool is_whole = true;
    keys_of(std::string(100'000, '\x0b'), &is_whole);
    EXPECT_FALSE(is_whole);
}

TEST(WireVarints, StopAtWhatIsDamaged) {
    Varints numbers("\x01\x80\x01\xff");
    std::uint64_t value = 0;
    ASSERT_TRUE(numbers.next(value));
    EXPECT_EQ(value, 1U);
    ASSERT_TRUE(numbers.next(value));
    EXPECT_EQ(value, 128U);
    EXPECT_FALSE(numbers.next(value));
    EXPECT_TRUE(numbers.is_damaged());
}

}  // namespace
}  // namespace headrace::onnx::wire
