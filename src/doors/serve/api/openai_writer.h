#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "doors/serve/api/shapes.h"
#include "doors/serve/models/answering.h"

namespace headrace::serve {

/// What answers of OpenAI's chats and completions have in common.
class OpenAiWriter : public AnswerWriter {
public:
    /// kind: the name of a stream's objects. prefix: of the id.
    OpenAiWriter(std::shared_ptr<ServedModel> model, AnswerOptions options, std::string_view kind,
                 std::string_view prefix)
        : model_(std::move(model)), options_(options), kind_(kind), id_(new_id(prefix)) {}

    std::string finish(const std::vector<Reply>& replies) override {
        std::string text;
        if (options_.includes_usage) {
            Json body = envelope(Json::array());
            add_counts(body, replies);
            text = event_of(body);
        }
        return text + kDone;
    }
    std::string failed(const ApiError& error) override { return event_of(openai_error(error)) + kDone; }

protected:
    Json envelope(Json choices) const {
        return {{"choices", std::move(choices)},
                {"created", created_},
                {"id", id_},
                {"model", model_->id()},
                {"system_fingerprint", fingerprint()},
                {"object", kind_}};
    }
    void add_counts(Json& body, const std::vector<Reply>& replies) const {
        body["usage"] = usage_of(replies, options_.choices);
        body["timings"] = timings_of(replies.front());
    }

    const std::shared_ptr<ServedModel> model_;
    const AnswerOptions options_;

private:
    static constexpr const char* kDone = "data: [DONE]\n\n";

    const std::string kind_, id_;
    const std::int64_t created_ = now();
};

}  // namespace headrace::serve
