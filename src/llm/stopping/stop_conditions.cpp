#include "llm/stopping/stop_conditions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.h"
#include "llm/stopping/pattern_search.h"
#include "llm/stopping/repetition.h"
#include "llm/stopping/sentence_similarity.h"
#include "llm/stopping/stop_strings.h"
#include "llm/stopping/time_limit.h"

namespace headrace {

std::string_view to_string(StopReason reason) {
    static constexpr std::array<std::string_view, 14> kNames = {
        "none",    "end_of_answer", "token_limit", "context_full", "stop_string",
        "pattern", "time_limit",    "indentation", "repetition",   "similarity",
        "grammar", "cancelled",     "timed_out",   "failed"};
    static_assert(kNames.size() == static_cast<std::size_t>(StopReason::failed) + 1);
    return kNames[static_cast<std::size_t>(reason)];
}

}  // namespace headrace

namespace headrace::llm {

/// As llama-server has it: from the second line on, blanks before a line's first other character are counted;
/// an empty line has none.
class Indentation {
public:
    explicit Indentation(int least) : least_(least) {}

    bool is_too_small_at(char32_t c) const {
        return least_ > 0 && in_blanks_ && !is_blank(c) && blanks_ < least_;
    }
    void feed(char32_t c) {
        if (c == '\n') {
            in_blanks_ = true;
            blanks_ = 0;
        } else if (!is_blank(c)) {
            in_blanks_ = false;
        } else if (in_blanks_ && blanks_ < least_) {
            ++blanks_;
        }
    }

private:
    static bool is_blank(char32_t c) { return c == ' ' || c == '\t'; }
    int least_;
    int blanks_ = 0;
    bool in_blanks_ = false;
};

namespace {

/// The window of settings that ask for the detection of repetitions, and say no more.
constexpr int kUsualWindow = 128;

int repetition_window(const StoppingSettings& settings) {
    return settings.repetition_window == 0 && settings.detect_repetition ? kUsualWindow
                                                                         : settings.repetition_window;
}

/// Patterns in the order in which a search over both kinds counts them, without empty ones.
std::vector<std::string> all_patterns(const std::vector<std::string>& patterns,
                                      const std::vector<std::string>& later) {
    std::vector<std::string> all = patterns;
    all.insert(all.end(), later.begin(), later.end());
    std::erase(all, "");
    return all;
}

}  // namespace

struct StopConditions::State {
    StopStrings strings;
    PatternSearch patterns;
    std::vector<std::string> pattern_texts;
    Indentation indentation;
    Repetition repetition;
    SentenceSimilarity similarity;
    TimeLimit time_limit;

    std::string incomplete;  // the start of a character, at most 3 bytes
    std::string text;        // whole characters that were not shown yet, from `shown` on
    std::size_t shown = 0;
    std::size_t dropped = 0;  // bytes that were in front of `text`
    StopReason reason = StopReason::none;
    std::string detail;

    void stop(StopReason why, std::string what) {
        reason = why;
        detail = std::move(what);
    }
    void take(char32_t c, std::string_view bytes);
    bool take_string(std::string_view bytes);
    std::string show(std::size_t bytes);
};

/// Sees to a character of the text, and ends the text where it makes a stop certain.
void StopConditions::State::take(char32_t c, std::string_view bytes) {
    if (take_string(bytes)) return;
    if (const auto pattern = patterns.ends_before(c))
        return stop(StopReason::pattern, pattern_texts[*pattern]);
    if (indentation.is_too_small_at(c)) return stop(StopReason::indentation, {});
    text += bytes;
    indentation.feed(c);
    if (const auto pattern = patterns.feed(c)) return stop(StopReason::pattern, pattern_texts[*pattern]);
    if (similarity.feed(c, bytes)) stop(StopReason::similarity, similarity.earlier());
}

/// Whether these bytes complete a stop string, which is then taken off the text.
bool StopConditions::State::take_string(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const auto found = strings.feed(bytes[i]);
        if (!found) continue;
        // Strings are valid UTF-8, so that one ends where a character does.
        text.resize(text.size() + bytes.size() - strings.string(*found).size());
        stop(StopReason::stop_string, strings.string(*found));
        return true;
    }
    return false;
}

/// The next bytes that were not shown yet.
std::string StopConditions::State::show(std::size_t bytes) {
    std::string result = text.substr(shown, bytes);
    shown += bytes;
    // Dropping what was shown costs as much as what remains: only once that is the smaller part.
    if (shown >= text.size() - shown) {
        dropped += shown;
        text.erase(0, std::exchange(shown, 0));
    }
    return result;
}

Result<StopConditions> StopConditions::create(const StoppingSettings& settings, int most_tokens) {
    const std::vector<std::string> later = all_patterns(settings.trigger_patterns, settings.filter_patterns);
    HR_ASSIGN(StopStrings strings, StopStrings::create(settings.strings));
    HR_ASSIGN(PatternSearch patterns, PatternSearch::create(settings.patterns, later));
    HR_ASSIGN(Repetition repetition,
              Repetition::create(repetition_window(settings), settings.repetition_count));
    HR_ASSIGN(SentenceSimilarity similarity,
              SentenceSimilarity::create(settings.similarity_threshold, settings.similarity_window));
    if (settings.n_indent < 0)
        return invalid("n_indent is {}; it must be 0 (off) or more", settings.n_indent);
    return StopConditions(
        std::make_unique<State>(State{.strings = std::move(strings),
                                      .patterns = std::move(patterns),
                                      .pattern_texts = all_patterns(settings.patterns, later),
                                      .indentation = Indentation(settings.n_indent),
                                      .repetition = std::move(repetition),
                                      .similarity = std::move(similarity),
                                      .time_limit = TimeLimit(settings, most_tokens)}));
}

StopConditions::StopConditions(std::unique_ptr<State> state) : state_(std::move(state)) {}
StopConditions::StopConditions(StopConditions&&) noexcept = default;
StopConditions& StopConditions::operator=(StopConditions&&) noexcept = default;
StopConditions::~StopConditions() = default;

StopConditions::Step StopConditions::feed(int token, std::string_view piece,
                                          std::chrono::steady_clock::time_point now) {
    State& state = *state_;
    if (state.reason != StopReason::none) return {.reason = state.reason, .detail = state.detail};
    const auto time_limit = state.time_limit.reached(now);
    state.incomplete += piece;
    const std::string bytes = std::exchange(state.incomplete, {});
    std::string_view rest = bytes;
    while (state.reason == StopReason::none) {
        const auto point = first_code_point(rest);
        if (!point) break;
        state.take(point->value, point->is_valid ? rest.substr(0, point->size) : "\xEF\xBF\xBD");
        rest.remove_prefix(point->size);
    }
    if (state.reason != StopReason::none) {
        rest = {};
    } else if (state.repetition.feed(token, piece)) {
        state.stop(StopReason::repetition, state.repetition.run());
    } else if (time_limit) {
        state.stop(StopReason::time_limit, fmt::format("{} ms", *time_limit));
    }
    state.incomplete = rest;
    const bool ends = state.reason != StopReason::none;
    const std::size_t unseen = state.text.size() - state.shown;
    return {.text = state.show(ends ? unseen : unseen - state.strings.held_back()),
            .reason = state.reason,
            .detail = state.detail};
}

std::size_t StopConditions::length() const { return state_->dropped + state_->text.size(); }

std::size_t StopConditions::shown_length() const { return state_->dropped + state_->shown; }

std::string StopConditions::finish() { return state_->show(state_->text.size() - state_->shown); }

}  // namespace headrace::llm
