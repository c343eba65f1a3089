#pragma once
#include <cstddef>
#include <span>

#include "base/file_pages.h"

namespace headrace {

/// As long as it lives, what this thread says that it has read of the bytes for the last time goes back to
/// their file: who packs a large constant needs few of its pages at once.
class ReadingProgress {
public:
    ReadingProgress(const FilePages& pages, std::span<const std::byte> bytes);
    ~ReadingProgress();
    ReadingProgress(const ReadingProgress&) = delete;
    ReadingProgress& operator=(const ReadingProgress&) = delete;

    /// For those who read: does nothing where nobody wants to know.
    static void was_read(std::span<const std::byte> part);

private:
    const FilePages& pages_;
    std::span<const std::byte> bytes_;
    ReadingProgress* outer_;
};

}  // namespace headrace
