#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "llm/log.h"

namespace headrace::llm {

/// The log goes to a file of the test's own, and back to stderr afterwards.
class TemporaryLog : public testing::Test {
protected:
    TemporaryLog() {
        const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
        folder_ = testing::TempDir() + "/headrace_" + test->test_suite_name() + "_" + test->name();
        std::filesystem::remove_all(folder_);
        std::filesystem::create_directories(folder_);
        file_ = folder_ + "/log";
    }
    ~TemporaryLog() override {
        set_log_callback(nullptr);
        EXPECT_TRUE(set_log(LogLevel::info, "text", ""));
        std::filesystem::remove_all(folder_);
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

    std::string folder_, file_;
};

}  // namespace headrace::llm
