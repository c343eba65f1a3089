#include "llm/stopping/repetition.h"

#include <algorithm>

namespace headrace::llm {

Result<Repetition> Repetition::create(int window, int count) {
    Repetition result;
    if (window == 0) return result;
    if (window < 2 || window > kMaxWindow)
        return invalid("repetition_window is {}; it must be 0 (off) or 2 to {} tokens", window, kMaxWindow);
    if (count < 2) return invalid("repetition_count is {}; a loop is at least 2 runs", count);
    result.longest_ = static_cast<std::size_t>(window) / 2;
    result.ids_.resize(2 * result.longest_);
    result.pieces_.resize(result.longest_);
    result.agreeing_.assign(result.longest_, 0);
    result.count_ = static_cast<std::uint32_t>(count);
    return result;
}

bool Repetition::feed(int token, std::string_view piece) {
    if (longest_ == 0) return false;
    const std::size_t slot = fed_ % longest_;
    const std::size_t known = std::min(fed_, longest_);
    const int* end = ids_.data() + slot + longest_;
    for (std::size_t length = 1; length <= known; ++length) {
        std::uint32_t& agreeing = agreeing_[length - 1];
        agreeing = end[-static_cast<std::ptrdiff_t>(length)] == token ? agreeing + 1 : 0;
    }
    ids_[slot] = ids_[slot + longest_] = token;
    pieces_[slot].assign(piece);
    ++fed_;
    for (std::size_t length = 1; length <= known; ++length) {
        if (agreeing_[length - 1] < std::uint64_t{count_ - 1} * length) continue;
        run_.clear();
        for (std::size_t i = fed_ - length; i < fed_; ++i) run_ += pieces_[i % longest_];
        return true;
    }
    return false;
}

}  // namespace headrace::llm
