#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "headrace/language_model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Watches the text of one generation, and ends it at the stop that is certain first; how the text is cut
/// into tokens makes no difference to that. docs/language-models.md says what each kind of stop is.
///
/// Shown text is always valid UTF-8: bytes that are no character become U+FFFD, and a character that the end
/// of the generation cuts in two is left out. A token costs as much as its own text does, not as the text so
/// far.
class StopConditions {
public:
    /// Errors name the setting, its value and the limit: of StopStrings, PatternProgram, Repetition or
    /// SentenceSimilarity.
    /// most_tokens: that the answer may have, for an adaptive limit of time; less than 1: not known.
    static Result<StopConditions> create(const StoppingSettings& settings, int most_tokens = 0);
    StopConditions(StopConditions&&) noexcept;
    StopConditions& operator=(StopConditions&&) noexcept;
    ~StopConditions();

    struct Step {
        /// May be shown now: whole characters, never part of a stop string. With a reason: all that is left.
        std::string text;
        StopReason reason = StopReason::none;
        std::string detail;  ///< the stop string, pattern or repeated text
    };
    /// The next token's text. After a reason other than none the text has ended: feeding more repeats the
    /// reason.
    Step feed(int token, std::string_view piece, std::chrono::steady_clock::time_point now);
    /// Bytes of the text so far, held back ones included; without the stop string once there is one.
    std::size_t length() const;
    std::size_t shown_length() const;  ///< without those
    /// What was held back, when the generation ends for another reason.
    std::string finish();

private:
    struct State;
    explicit StopConditions(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace headrace::llm
