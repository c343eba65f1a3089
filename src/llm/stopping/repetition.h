#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace::llm {

/// Notices when the last tokens are one run of up to half the window's tokens, `count` times in a row.
class Repetition {
public:
    static constexpr int kMaxWindow = 16384;

    /// window 0: never notices anything.
    static Result<Repetition> create(int window, int count);

    /// Whether this token completes a loop. Costs a comparison per length that a run may have.
    bool feed(int token, std::string_view piece);
    /// The text of the run that was found.
    const std::string& run() const { return run_; }

private:
    std::size_t longest_ = 0;          // tokens of a run
    std::vector<int> ids_;             // the last `longest_` ones, twice: every window of them is contiguous
    std::vector<std::string> pieces_;  // the same tokens' texts, once
    std::size_t fed_ = 0;
    /// By a run's length, less 1: how many tokens at the end equal the one that long before them.
    std::vector<std::uint32_t> agreeing_;
    std::uint32_t count_ = 0;
    std::string run_;
};

}  // namespace headrace::llm
