#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace headrace {

/// A folder that nobody else uses, removed at the end. Tests of one program run at the same time in several
/// processes: a file with a name of its own in the common folder may be cut short while another test maps it.
class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = ::testing::TempDir() + "/headrace_XXXXXX";
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder could be made: " + name);
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::filesystem::path& path() const { return path_; }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    std::string write(const std::string& name, const std::string& content) const {
        std::ofstream(*this / name, std::ios::binary) << content;
        return *this / name;
    }
    std::string read(const std::string& name) const {
        std::ostringstream content;
        content << std::ifstream(*this / name, std::ios::binary).rdbuf();
        return content.str();
    }

private:
    std::filesystem::path path_;
};

}  // namespace headrace
