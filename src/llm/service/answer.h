#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/language_model.h"
#include "llm/service/conversation.h"
#include "llm/settings.h"

namespace headrace::llm {

/// An answer taken apart as its template writes it.
struct Answer {
    std::string content, reasoning;
    std::vector<ToolCall> calls;
};
/// What cannot be parsed is content.
Answer parse_answer(const Prompt& prompt, const std::string& text, const RequestSettings& settings);

/// The same while the text comes.
class AnswerReader {
public:
    AnswerReader(const Prompt& prompt, const RequestSettings& settings);
    AnswerReader(AnswerReader&&) noexcept;
    ~AnswerReader();

    /// What more text adds to the answer; `piece` is left to the caller.
    MessagePart read(const std::string& more);
    /// The last text, and what was held back because more might have changed it.
    MessagePart finish(const std::string& rest = {});

private:
    struct Parser;
    std::optional<MessagePart> difference(bool is_partial);

    std::unique_ptr<Parser> parser_;  // none where everything is content
    std::string text_;
};

}  // namespace headrace::llm
