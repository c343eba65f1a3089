#pragma once
#include <cstdint>
#include <unordered_map>

#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Guesses the next tokens of one stream from what followed the same few tokens before, and pauses itself
/// when the model seldom agrees. llama.cpp's own n-gram maps (common/ngram-map) abort on a history that was
/// cut, as by a context shift, and take 1 MiB a stream.
class Drafts {
public:
    explicit Drafts(const SpeculationSettings& settings) : settings_(settings) {}

    /// A draft that may follow the history, at most that long; empty when nothing is known or drafting
    /// pauses.
    Tokens propose(const Tokens& history, int most);
    /// How long a draft from elsewhere may be now; 0 while drafting pauses.
    int wanted(int most);
    void judge(int proposed, int accepted);
    /// The history was changed other than by adding tokens.
    void forget();

private:
    SpeculationSettings settings_;
    std::unordered_map<std::uint64_t, std::size_t>
        places_;  // hash of an n-gram: position after its last occurrence
    std::size_t indexed_ = 0;
    double acceptance_ = 1;
    int length_ = 4;  // grows while drafts are right
    int pause_ = 0, next_pause_ = 16;
};

}  // namespace headrace::llm
