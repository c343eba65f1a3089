#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/log.h"
#include "temporary_folder.h"

namespace headrace {

/// The log goes to a file of the test's own, and back to stderr afterwards.
class TemporaryLog : public testing::Test {
protected:
    ~TemporaryLog() override {
        set_log_callback(nullptr);
        EXPECT_TRUE(set_log(LogLevel::info, "text", ""));
    }

    void configure(LogLevel level, std::string_view format = "text") {
        const Status status = set_log(level, format, file_);
        ASSERT_TRUE(status) << status.error().message;
    }
    std::string text() const {
        std::ifstream stream(file_);
        return (std::ostringstream() << stream.rdbuf()).str();
    }
    std::vector<std::string> lines() const {
        std::vector<std::string> result;
        std::istringstream stream(text());
        for (std::string line; std::getline(stream, line);) result.push_back(line);
        return result;
    }

    const TemporaryFolder temporary_;
    const std::string folder_ = temporary_.path().string(), file_ = temporary_ / "log";
};

}  // namespace headrace
