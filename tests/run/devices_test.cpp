#include "run/devices.h"

#include <gtest/gtest.h>

#include "ggml.h"

namespace headrace {
namespace {

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

TEST(Devices, OfGgmlsOwnLogOnlyProblemsAreWritten) {
    ASSERT_TRUE(find_device("cpu").ok());
    ggml_log_callback log = nullptr;
    void* data = nullptr;
    ggml_log_get(&log, &data);
    ::testing::internal::CaptureStderr();
    log(GGML_LOG_LEVEL_DEBUG, "a graph is used ", data);
    log(GGML_LOG_LEVEL_CONT, "again\n", data);
    log(GGML_LOG_LEVEL_WARN, "memory is ", data);
    log(GGML_LOG_LEVEL_CONT, "short\n", data);
    log(GGML_LOG_LEVEL_INFO, "found a device\n", data);
    const std::string written = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(written.ends_with(" warn  memory is short\n")) << written;
    EXPECT_EQ(written.find('\n'), written.size() - 1) << "one line: " << written;
}

TEST(Devices, WhatIsNotThereIsRefusedWithWhatIs) {
    const std::string message = find_device("gpu9").error().message;
    EXPECT_TRUE(message.starts_with("there is no device 'gpu9'; known: cpu, auto")) << message;
    EXPECT_TRUE(message.ends_with("rpc://host:port; docs/devices.md tells how a GPU is added")) << message;
    EXPECT_EQ(message.find("CPU,"), std::string::npos) << "cpu is listed once: " << message;
}

}  // namespace
}  // namespace headrace
