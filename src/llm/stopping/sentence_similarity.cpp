#include "llm/stopping/sentence_similarity.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace headrace::llm {
namespace {

bool is_space(char32_t c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == 0xA0 || c == 0x3000; }

/// Ends a sentence when a space follows: "3.14" goes on.
bool is_terminator(char32_t c) { return c == '.' || c == '!' || c == '?' || c == 0x2026; }

/// Ends a sentence by itself, as in Chinese and Japanese.
bool is_full_stop(char32_t c) { return c == 0x3002 || c == 0xFF01 || c == 0xFF1F || c == 0xFF0E; }

/// The letters and digits in lower case, with a space wherever anything else was, and at both ends.
std::u32string words_of(std::string_view text) {
    std::u32string words = U" ";
    while (const auto point = first_code_point(text)) {
        text.remove_prefix(point->size);
        const char32_t c = point->value, lower = c >= 'A' && c <= 'Z' ? c + 32 : c;
        const bool is_word = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
                             (c >= 0x80 && !is_space(c) && !is_full_stop(c) && c != 0x2026);
        if (is_word)
            words += lower;
        else if (words.back() != ' ')
            words += U' ';
    }
    if (words.back() != ' ') words += U' ';
    return words;
}

/// Ascending, each once; three code points of 21 bits fit into one number.
std::vector<std::uint64_t> trigrams_of(const std::u32string& words) {
    std::vector<std::uint64_t> result;
    for (std::size_t i = 2; i < words.size(); ++i)
        result.push_back(std::uint64_t{words[i - 2]} << 42 | std::uint64_t{words[i - 1]} << 21 | words[i]);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

float overlap(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
    std::size_t common = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        common += a[i] == b[j];
        const bool advance_a = a[i] <= b[j], advance_b = b[j] <= a[i];
        i += advance_a;
        j += advance_b;
    }
    const std::size_t either = a.size() + b.size() - common;
    return either == 0 ? 0 : static_cast<float>(common) / static_cast<float>(either);
}

}  // namespace

float trigram_similarity(std::string_view a, std::string_view b) {
    return overlap(trigrams_of(words_of(a)), trigrams_of(words_of(b)));
}

Result<SentenceSimilarity> SentenceSimilarity::create(float threshold, int window, Measure measure) {
    SentenceSimilarity result;
    if (!(threshold >= 0 && threshold <= 1))
        return invalid("similarity_threshold is {}; it must be 0 (off) to 1 (the same)", threshold);
    if (threshold == 0) return result;
    if (window < 1 || window > kMaxWindow)
        return invalid("similarity_window is {}; it must be 1 to {} sentences", window, kMaxWindow);
    result.threshold_ = threshold;
    result.window_ = static_cast<std::size_t>(window);
    result.measure_ = std::move(measure);
    return result;
}

bool SentenceSimilarity::feed(char32_t c, std::string_view bytes) {
    if (window_ == 0) return false;
    const bool is_end = c == '\n' || is_full_stop(c) || (after_terminator_ && is_space(c));
    after_terminator_ = is_terminator(c);
    if (!current_.empty() || !is_space(c)) {
        current_ += bytes;
        ++characters_;
    }
    return (is_end || characters_ >= kMaxSentence) && compare();
}

/// Compares the current sentence with those before it, and puts it among them.
bool SentenceSimilarity::compare() {
    Sentence sentence{.text = std::exchange(current_, {})};
    characters_ = 0;
    const std::size_t end = sentence.text.find_last_not_of(" \t\r\n");
    if (end == std::string::npos) return false;
    sentence.text.resize(end + 1);
    const std::u32string words = words_of(sentence.text);
    if (words.size() - static_cast<std::size_t>(std::count(words.begin(), words.end(), U' ')) < kMinSentence)
        return false;
    if (!measure_) sentence.trigrams = trigrams_of(words);
    for (const Sentence& earlier : sentences_) {
        if (!(resemblance(earlier, sentence) >= threshold_)) continue;  // nor is NaN a resemblance
        earlier_ = earlier.text;
        return true;
    }
    sentences_.push_back(std::move(sentence));
    if (sentences_.size() > window_) sentences_.pop_front();
    return false;
}

float SentenceSimilarity::resemblance(const Sentence& a, const Sentence& b) const {
    return measure_ ? measure_(a.text, b.text) : overlap(a.trigrams, b.trigrams);
}

}  // namespace headrace::llm
