#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headrace::llm {

/// The share of two texts' character trigrams that they have in common, |A and B| / |A or B|: 1 for texts
/// with the same trigrams, 0 for those without a common one. Case (of ASCII letters), punctuation and spacing
/// make no difference. A text without letters and digits resembles none.
float trigram_similarity(std::string_view a, std::string_view b);

/// Notices when a sentence resembles one of those before it.
class SentenceSimilarity {
public:
    using Measure = std::function<float(std::string_view, std::string_view)>;
    static constexpr int kMaxWindow = 64;
    static constexpr std::size_t kMaxSentence =
        2048;  ///< characters, after which a sentence is taken to have ended
    static constexpr std::size_t kMinSentence = 8;  ///< letters and digits; shorter ones are not compared

    /// threshold 0: never notices anything. Without a measure trigrams are compared.
    static Result<SentenceSimilarity> create(float threshold, int window, Measure measure = nullptr);

    /// Whether this character ends a sentence that resembles an earlier one.
    bool feed(char32_t c, std::string_view bytes);
    /// The earlier sentence that was found.
    const std::string& earlier() const { return earlier_; }

private:
    struct Sentence {
        std::string text;
        std::vector<std::uint64_t> trigrams;
    };
    bool compare();
    float resemblance(const Sentence& a, const Sentence& b) const;

    float threshold_ = 0;
    std::size_t window_ = 0;
    Measure measure_;
    std::string current_;
    std::size_t characters_ = 0;  // of the current sentence
    bool after_terminator_ = false;
    std::deque<Sentence> sentences_;
    std::string earlier_;
};

}  // namespace headrace::llm
