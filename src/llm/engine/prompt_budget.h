#pragma once
#include <vector>

namespace headrace::llm {

/// How many prompt tokens a step may take beside streams that decode, so that these do not stall.
///
/// Steps come in sizes, because kernels compute whole tiles of tokens: 17 take as long as 32, and attention
/// over many tokens at once changes to a faster kernel. What a step of each size takes is learnt, and the
/// size that reads most tokens a second is taken; being late counts against a size with its square. All times
/// follow the latest step, for they all grow with the context, and with a neighbour's load.
class PromptBudget {
public:
    /// target_ms: what a step should take at most, about; most: a step's most tokens.
    PromptBudget(double target_ms, int most);

    /// Prompt tokens for a step in which that many tokens decode.
    int tokens(int decoding) const;
    void observe(int decoding, int prompt, double ms);

private:
    struct Size {
        int tokens;
        double ms = 0;  // 0: no step of this size has been seen
    };

    double expected_ms(std::size_t index) const;

    double target_ms_;
    int most_;
    std::vector<Size> sizes_;
};

}  // namespace headrace::llm
