#pragma once
#include <string>
#include <string_view>

#include "base/result.h"

namespace headrace::llm {

/// Bytes as a file without a name, for what reads files alone. What was mapped of it outlives it.
class MemoryFile {
public:
    /// A copy. Code::out_of_memory where there is no room.
    static Result<MemoryFile> of(std::string_view bytes);
    MemoryFile(MemoryFile&& other) noexcept;
    MemoryFile& operator=(MemoryFile&&) = delete;
    ~MemoryFile();

    std::string path() const;
    /// The error as it concerns whoever gave bytes, and knows of no file.
    Error within(Error error) const;

private:
    explicit MemoryFile(int file) : file_(file) {}

    int file_;
};

}  // namespace headrace::llm
