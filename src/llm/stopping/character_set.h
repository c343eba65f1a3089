#pragma once
#include <array>
#include <vector>

namespace headrace::llm {

/// A set of code points.
class CharacterSet {
public:
    struct Range {
        char32_t first, last;
    };
    CharacterSet() = default;
    explicit CharacterSet(std::vector<Range> ranges);

    bool contains(char32_t c) const;
    const std::vector<Range>& ranges() const { return ranges_; }
    CharacterSet complement() const;

private:
    std::vector<Range> ranges_;  // ascending, with gaps between them
    std::array<bool, 128> ascii_{};
};

}  // namespace headrace::llm
