#pragma once
#include <chrono>
#include <string>

namespace headrace::cli {

/// A line on standard error that says how far some work is, where that is a terminal and the work takes
/// longer than a moment; else nothing.
class Progress {
public:
    explicit Progress(std::string work);
    /// Takes the line away.
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// share: 0 to 1.
    void show(double share);
    void show(std::size_t done, std::size_t all);

private:
    std::string work_;
    std::chrono::steady_clock::time_point next_;
    bool is_terminal_, is_shown_ = false;
};

}  // namespace headrace::cli
