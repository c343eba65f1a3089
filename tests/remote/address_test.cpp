#include "remote/address.h"

#include <gtest/gtest.h>

namespace headrace::remote {
namespace {

TEST(Address, IsHostAndPort) {
    const auto address = Address::parse("rpc://server-1.example:50052");
    ASSERT_TRUE(address.ok());
    EXPECT_EQ(address.value().host, "server-1.example");
    EXPECT_EQ(address.value().port, 50052);
    EXPECT_EQ(address.value().name(), "rpc://server-1.example:50052");
}

TEST(Address, OfIpv6StandsInBrackets) {
    const auto address = Address::parse("rpc://[::1]:7");
    ASSERT_TRUE(address.ok());
    EXPECT_EQ(address.value().host, "::1");
    EXPECT_EQ(address.value().name(), "rpc://[::1]:7");
}

TEST(Address, OfAnotherFormIsAnErrorThatShowsIt) {
    for (const char* text : {"rpc://", "rpc://localhost", "rpc://:1", "rpc://localhost:", "rpc://localhost:0",
                             "rpc://localhost:65536", "rpc://localhost:1x", "rpc://::1:7", "rpc://a:-1"}) {
        const auto address = Address::parse(text);
        ASSERT_FALSE(address.ok()) << text;
        EXPECT_EQ(address.error().code, Code::invalid_argument);
        EXPECT_NE(address.error().message.find(text), std::string::npos);
        EXPECT_NE(address.error().message.find("rpc://host:port"), std::string::npos);
    }
}

}  // namespace
}  // namespace headrace::remote
