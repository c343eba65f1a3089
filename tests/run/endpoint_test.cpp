#include "run/endpoint.h"

#include <gtest/gtest.h>

#include "run/devices.h"

namespace headrace {
namespace {

TEST(Endpoint, WantsHostAndPort) {
    for (const char* text : {"", "localhost", ":1", "localhost:"}) {
        const Status status = check_endpoint(text);
        ASSERT_FALSE(status.ok()) << text;
        EXPECT_EQ(status.error().code, Code::invalid_argument);
        EXPECT_NE(status.error().message.find("host:port"), std::string::npos);
    }
}

TEST(Endpoint, ReportsARefusedConnection) {
    const Status status = check_endpoint("127.0.0.1:1");
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::backend_failure);
    EXPECT_NE(status.error().message.find("127.0.0.1:1"), std::string::npos);
}

TEST(Devices, TheCpuIsFoundByEitherName) {
    const auto by_role = find_device("cpu");
    ASSERT_TRUE(by_role.ok());
    EXPECT_TRUE(by_role.value().is_cpu);
    const auto by_name = find_device(by_role.value().name);
    ASSERT_TRUE(by_name.ok());
    EXPECT_EQ(by_name.value().handle, by_role.value().handle);
}

TEST(Devices, AutomaticChoiceTakesALocalGpuOrTheCpu) {
    const auto device = find_device("auto");
    ASSERT_TRUE(device.ok());
    EXPECT_EQ(device.value().is_cpu, !has_gpu());
}

}  // namespace
}  // namespace headrace
