#pragma once
#include <unistd.h>

#include <utility>

namespace headrace::llm {

/// A descriptor that is closed with it; -1: none.
class OpenFile {
public:
    explicit OpenFile(int file = -1) : file_(file) {}
    OpenFile(OpenFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    OpenFile& operator=(OpenFile&&) = delete;
    ~OpenFile() {
        if (file_ >= 0) close(file_);
    }
    int get() const { return file_; }

private:
    int file_;
};

}  // namespace headrace::llm
