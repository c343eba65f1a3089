#include "remote/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "dripping_host.h"

namespace headrace::remote {
namespace {

using testing::DrippingHost;
using ::testing::HasSubstr;

Socket connected(const Address& address) {
    return std::move(Socket::connect(address, Milliseconds(5000))).value();
}

TEST(Socket, ThatDripsIsNotWaitedForByteByByte) {
    const DrippingHost host(Milliseconds(20));
    const Socket socket = connected(host.address());
    std::array<std::uint8_t, 1000> bytes{};  // 20 s
    const auto start = Clock::now();
    const Status got = socket.receive(bytes, Milliseconds(200));
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code, Code::backend_failure);
    EXPECT_THAT(got.error().message, HasSubstr("too slow"));
    EXPECT_THAT(got.error().message, HasSubstr("of 1000 bytes within 0.32"));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
}

TEST(Socket, IsReadNoLongerThanUntilTheGivenTime) {
    const DrippingHost host(Milliseconds(20));
    const Socket socket = connected(host.address());
    std::array<std::uint8_t, 1000> bytes{};
    const auto start = Clock::now();
    const Status got = socket.receive(bytes, Milliseconds(60000), start + Milliseconds(300));
    ASSERT_FALSE(got.ok());
    EXPECT_GE(Clock::now() - start, Milliseconds(300));
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
}

TEST(Socket, MayTakeItsTimeForWhatIsSteadyAndNotTooSlow) {
    const DrippingHost host(Milliseconds(1));
    const Socket socket = connected(host.address());
    std::array<std::uint8_t, 400> bytes{};
    EXPECT_TRUE(socket.receive(bytes, Milliseconds(20000)).ok());
    EXPECT_EQ(bytes.back(), 7);
}

TEST(Socket, ThatIsSilentIsAnotherErrorThanOneThatIsClosed) {
    Socket listener = std::move(Socket::listen({"127.0.0.1", 0})).value();
    const Socket near = connected({"127.0.0.1", listener.port()});
    Socket far = std::move(listener.accept(-1)).value();
    std::array<std::uint8_t, 8> bytes{};
    const Status silent = near.receive(bytes, Milliseconds(50));
    ASSERT_FALSE(silent.ok());
    EXPECT_EQ(silent.error().code, Code::timed_out);
    EXPECT_THAT(silent.error().message, HasSubstr("no answer for 0.05 s"));
    far.close();
    const Status closed = near.receive(bytes, Milliseconds(1000));
    ASSERT_FALSE(closed.ok());
    EXPECT_EQ(closed.error().code, Code::io);
}

}  // namespace
}  // namespace headrace::remote
