#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "llm/blocks/open_file.h"

namespace headrace::llm {

/// The lock of a folder that several processes write into, held as long as this lives, and what its file
/// counts: the bytes that the folder's files take or will take. Processes that die give the lock back.
class FolderLedger {
public:
    /// The folder must exist. Errors: the file cannot be made or locked, as in a folder that is read-only;
    /// another process keeps the lock for longer than that.
    static Result<FolderLedger> lock(const std::string& folder, std::chrono::milliseconds patience);

    /// The bytes of all blocks; none where nobody has counted yet, or the file is damaged.
    std::optional<std::uint64_t> bytes() const;
    Status set_bytes(std::uint64_t bytes) const;

private:
    explicit FolderLedger(int file) : file_(file) {}
    OpenFile file_;
};

}  // namespace headrace::llm
