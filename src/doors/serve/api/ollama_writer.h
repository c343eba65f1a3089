#pragma once
#include <memory>
#include <string>
#include <vector>

#include "doors/serve/models/answering.h"

namespace headrace::serve {

/// Ollama's answers of chats and texts: a line of JSON for each piece.
class OllamaWriter : public AnswerWriter {
public:
    struct Shown {
        bool is_chat = false;  ///< messages, and not texts
        bool thoughts = true;
        int logprobs = -1;     ///< of each token with so many likely ones; -1: none
        bool context = false;  ///< the tokens of prompt and answer, from which a text can go on
        std::vector<Warning> warnings = {};
    };
    /// name: as the request spells the model.
    OllamaWriter(std::shared_ptr<ServedModel> model, std::string name, Shown shown)
        : model_(std::move(model)), name_(std::move(name)), shown_(std::move(shown)) {}

    Json whole(const std::vector<Reply>& replies) override;
    std::string_view type() const override { return "application/x-ndjson"; }
    std::string part(std::size_t choice, const MessagePart& part) override;
    std::string end(std::size_t choice, const Reply& reply) override;
    std::string finish(const std::vector<Reply>&) override { return {}; }
    std::string failed(const ApiError& error) override;
    std::string ping() const override { return " "; }  // in front of the next line, where JSON allows it

    /// To a request without anything to answer. reason: "load" or "unload".
    Json answer_to_nothing(std::string_view reason) const;

private:
    Json shaped(const std::string& content, const std::string& reasoning, Json calls, bool is_done) const;
    void add_end(Json& body, const Reply& reply) const;
    Json logprobs_of(const std::vector<std::int32_t>& tokens,
                     const std::vector<std::vector<TokenProbability>>& likeliest,
                     const std::vector<float>& own) const;

    const std::shared_ptr<ServedModel> model_;
    const std::string name_;
    const Shown shown_;
    std::vector<ToolCall> calls_;
};

}  // namespace headrace::serve
