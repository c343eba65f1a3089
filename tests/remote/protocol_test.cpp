#include "remote/protocol.h"

#include <gtest/gtest.h>

#include <cstring>

namespace headrace::remote {
namespace {

template <class... T>
Bytes packed(T... values) {
    Bytes bytes((sizeof(T) + ...));
    std::size_t at = 0;
    const auto put = [&](const auto& value) {
        std::memcpy(bytes.data() + at, &value, sizeof(value));
        at += sizeof(value);
    };
    (put(values), ...);
    return bytes;
}

Request request(Command command, Bytes head = {}) { return {command, head.size(), std::move(head)}; }

Request allocation(std::uint64_t bytes) {
    return request(Command::alloc_buffer, packed(std::uint32_t{0}, bytes));
}
Bytes buffer(std::uint64_t handle, std::uint64_t bytes) { return packed(handle, bytes); }

TEST(Protocol, AReplyIsAsLongAsTheRequestSays) {
    EXPECT_EQ(reply_bytes(request(Command::graph_compute)), std::nullopt);
    EXPECT_EQ(reply_bytes(request(Command::device_count)), 4u);
    Bytes tensor;
    append(tensor, WireTensor::row(1, 2, 1000).bytes);
    append(tensor, std::uint64_t{0});
    append(tensor, std::uint64_t{640});
    EXPECT_EQ(reply_bytes(request(Command::get_tensor, tensor)), 640u);
}

TEST(Protocol, ABufferMustHoldWhatWasAskedFor) {
    PeerRecord record;
    EXPECT_TRUE(record.check(allocation(4096), buffer(7, 4096)).ok());
    EXPECT_TRUE(record.check(allocation(4096), buffer(0, 0)).ok()) << "no memory is an answer";
    EXPECT_FALSE(record.check(allocation(4096), buffer(7, 4095)).ok());
    EXPECT_FALSE(record.check(allocation(4096), buffer(7, UINT64_MAX)).ok());
}

TEST(Protocol, ABufferBeginsAtAnAlignedAddressAndDoesNotWrapAround) {
    PeerRecord record;
    ASSERT_TRUE(record.check(request(Command::get_alignment), packed(std::uint64_t{64})).ok());
    ASSERT_TRUE(record.check(allocation(4096), buffer(7, 4096)).ok());
    const auto base = [&](std::uint64_t address) {
        return record.check(request(Command::buffer_get_base, packed(std::uint64_t{7})), packed(address))
            .ok();
    };
    EXPECT_TRUE(base(0x1000));
    EXPECT_FALSE(base(0));
    EXPECT_FALSE(base(0x1001));
    EXPECT_FALSE(base(UINT64_MAX - 4095));
}

TEST(Protocol, WhatADeviceSaidOfItsAlignmentHoldsOnEveryConnection) {
    const auto alignments = std::make_shared<Alignments>();
    const Request second_device = request(Command::get_alignment, packed(std::uint32_t{1}));
    ASSERT_TRUE(PeerRecord(alignments).check(second_device, packed(std::uint64_t{8192})).ok());
    PeerRecord later(alignments);
    ASSERT_TRUE(later.check(allocation(4096), buffer(7, 4096)).ok());
    const Request there = request(Command::alloc_buffer, packed(std::uint32_t{1}, std::uint64_t{4096}));
    ASSERT_TRUE(later.check(there, buffer(8, 4096)).ok());
    const auto base = [&](std::uint64_t handle, std::uint64_t address) {
        return later.check(request(Command::buffer_get_base, packed(handle)), packed(address)).ok();
    };
    EXPECT_TRUE(base(7, 0x1040)) << "the first device said nothing like it";
    EXPECT_FALSE(base(8, 0x1040));
    EXPECT_TRUE(base(8, 0x4000));
}

TEST(Protocol, NumbersThatGgmlWouldDivideByOrAddUpAreSane) {
    const auto is_sane = [](Command command, Bytes reply) {
        return PeerRecord().check(request(command), reply).ok();
    };
    EXPECT_FALSE(is_sane(Command::get_alignment, packed(std::uint64_t{0})));
    EXPECT_FALSE(is_sane(Command::get_alignment, packed(std::uint64_t{48})));
    EXPECT_FALSE(is_sane(Command::get_max_size, packed(std::uint64_t{0})));
    EXPECT_FALSE(is_sane(Command::get_alloc_size, packed(UINT64_MAX)));
    EXPECT_FALSE(is_sane(Command::device_count, packed(std::uint32_t{0})));
    EXPECT_FALSE(is_sane(Command::device_count, packed(std::uint32_t{100000})));
    EXPECT_FALSE(is_sane(Command::get_device_memory, packed(UINT64_MAX, UINT64_MAX)));
    EXPECT_TRUE(is_sane(Command::get_device_memory, packed(std::uint64_t{1} << 34, std::uint64_t{1} << 35)));
}

TEST(Protocol, AnotherVersionIsNamedBesideOurs) {
    Bytes greeting = stand_in(request(Command::hello));
    EXPECT_TRUE(check_version(greeting).ok());
    for (std::size_t part : {0, 1, 2}) {
        Bytes other = greeting;
        other[part] = 99;
        const Status status = check_version(other);
        ASSERT_FALSE(status.ok());
        EXPECT_NE(status.error().message.find("99"), std::string::npos);
        EXPECT_NE(status.error().message.find(own_version()), std::string::npos);
    }
}

TEST(Protocol, WhatStandsInForALostHostPassesItsOwnChecks) {
    PeerRecord record;
    for (int byte = 0; is_command(static_cast<std::uint8_t>(byte)); ++byte) {
        const Request asked =
            request(static_cast<Command>(byte), packed(std::uint32_t{0}, std::uint64_t{4096}));
        if (asked.command == Command::get_tensor || !reply_bytes(asked)) continue;
        const Bytes reply = stand_in(asked);
        EXPECT_EQ(reply.size(), *reply_bytes(asked)) << name_of(asked.command);
        EXPECT_TRUE(record.check(asked, reply).ok()) << name_of(asked.command);
    }
}

}  // namespace
}  // namespace headrace::remote
