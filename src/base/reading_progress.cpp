#include "base/reading_progress.h"

#include <functional>

namespace headrace {
namespace {

thread_local ReadingProgress* innermost_progress = nullptr;

}  // namespace

ReadingProgress::ReadingProgress(const FilePages& pages, std::span<const std::byte> bytes)
    : pages_(pages), bytes_(bytes), outer_(innermost_progress) {
    innermost_progress = this;
}

ReadingProgress::~ReadingProgress() { innermost_progress = outer_; }

void ReadingProgress::was_read(std::span<const std::byte> part) {
    const ReadingProgress* of = innermost_progress;
    if (!of || part.empty()) return;
    const std::byte *begin = of->bytes_.data(), *end = begin + of->bytes_.size();
    const bool lies_within =
        std::greater_equal<>()(part.data(), begin) && std::less_equal<>()(part.data() + part.size(), end);
    if (lies_within) of->pages_.give_back(part);
}

}  // namespace headrace
