#include "doors/serve/models/answering.h"

#include <chrono>
#include <optional>

namespace headrace::serve {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLook(100);         // whether the client is still there
constexpr milliseconds kLookAtSeveral(2);  // of several answers, each in its turn
constexpr milliseconds kDoubt(200);        // after which one that sends no more is written to

/// Answers that are being written, from their start to their end.
class Answers {
public:
    Answers(std::shared_ptr<ServedModel> model, const HttpRequest& from, Task task)
        : model_(std::move(model)),
          task_(std::move(task)),
          is_gone_(from.is_gone),
          sends_no_more_(from.sends_no_more),
          record_(from.record) {
        record_->set_model(model_->id());
        for (Request& request : task_.requests) {
            check_parameters(request.parameters);
            model_->add_adapters(request.parameters);
            if (task_.requests.size() > 1 && !model_->session_of(request.parameters).empty())
                throw wrong_field("session",
                                  "has one answer at a time: ask for one, or for several without it");
            request.owner = from.client.empty() ? request.owner : "key:" + from.client;
            const auto counted = holders_.empty() ? std::optional(from.client) : std::nullopt;
            holders_.push_back(model_->places().enter(counted, task_.options.wanted_slot));
            holders_.back()->asks_for(request.parameters, task_.options.streams, from.client);
            start(request, from.client);
        }
    }

    /// Waits for all answers. Nothing when the client went away.
    std::optional<std::vector<Reply>> collect() {
        for (std::size_t i = 0; i < generations_.size(); ++i)
            while (next(i, kLook))
                if (is_gone_()) return record_->set_error(kClientIsGone), std::nullopt;
        return std::move(replies_);
    }

    void stream(HttpSink& sink, AnswerWriter& writer) {
        if (!write_all(sink, writer)) record_->set_error(kClientIsGone);
    }

    /// Tells the writer which slot each answer had.
    void place(AnswerWriter& writer) {
        for (std::size_t i = 0; i < holders_.size(); ++i) writer.placed(i, holders_[i]->slot());
    }

    /// For a failure while they are written, which the log tells.
    ApiError error_of(const Exception& error) const {
        model_->count_outcome(&error);
        ApiError shown = model_->error_of(error);
        record_->set_error(shown.what());
        return shown;
    }

private:
    /// False when the client went away.
    bool write_all(HttpSink& sink, AnswerWriter& writer) {
        Clock::time_point written = Clock::now();
        const auto write = [&](const std::string& text) {
            if (text.empty()) return true;
            written = Clock::now();
            return sink.write(text);
        };
        if (!write(writer.begin())) return false;
        const milliseconds patience = generations_.size() == 1 ? kLook : kLookAtSeveral;
        std::vector<bool> ended(generations_.size());
        for (std::size_t left = generations_.size(), i = 0; left > 0; i = (i + 1) % generations_.size()) {
            if (ended[i]) continue;
            std::vector<MessagePart> parts;
            const bool goes_on = next(i, patience, &parts);
            writer.placed(i, holders_[i]->slot());
            for (const MessagePart& part : parts)
                if (!write(writer.part(i, part))) return false;
            if (!goes_on) {
                ended[i] = true;
                --left;
                if (!write(writer.end(i, replies_[i]))) return false;
            }
            if (is_gone_()) return false;
            if (is_ping_due(Clock::now() - written) && !write(writer.ping())) return false;
        }
        return write(writer.finish(replies_));
    }

    /// silence: since something was written.
    bool is_ping_due(Clock::duration silence) const {
        const auto interval = model_->ping_interval();
        return (interval.count() > 0 && silence > interval) || (silence > kDoubt && sends_no_more_());
    }

    void check_parameters(const Parameters& parameters) const {
        try {
            check_values(parameters);
        } catch (const ApiError& error) {
            throw renamed(error, task_.options.names);
        }
    }

    /// No model can go on with an empty text that no token begins.
    static bool is_nothing(const Request& request) {
        return request.tokens.empty() && request.messages.empty() && request.prompt.empty();
    }

    /// Only messages are remembered.
    void check_session(const Request& request) const {
        if (!request.messages.empty() || model_->session_of(request.parameters).empty()) return;
        throw renamed(wrong_field("session_id",
                                  "is of chats, and a text is of none: send all of it (what was "
                                  "read before is not read again)"),
                      task_.options.names);
    }

    void start(Request& request, const std::string& client) {
        try {
            check_session(request);
            if (!client.empty()) model_->keep_session_apart(request.parameters, client);
            if (is_nothing(request)) {
                static_cast<void>(model_->engine().effective(request.parameters));  // wrong ones are errors
                generations_.emplace_back();
            } else {
                generations_.emplace_back(model_->engine().stream(request));
            }
            replies_.emplace_back();
        } catch (const Exception& error) {
            model_->count_outcome(&error);
            throw renamed(model_->error_of(error, &request), task_.options.names);
        }
    }

    /// Waits for more of an answer; false at its end, when the reply is there.
    bool next(std::size_t i, milliseconds patience, std::vector<MessagePart>* parts = nullptr) {
        std::optional<Generation>& generation = generations_[i];
        if (!generation) return false;
        if (!generation->wait_for(patience)) {
            holders_[i]->slot();
            return true;
        }
        std::optional<MessagePart> part;
        if (parts) {
            if ((part = generation->next_part())) parts->push_back(*part);
        } else if (auto piece = generation->next()) {
            part = MessagePart{.piece = std::move(*piece)};
        }
        if (part) {
            holders_[i]->generated(part->piece.text, part->piece.tokens);
            return true;
        }
        replies_[i] = generation->reply();
        holders_[i]->ends_with(replies_[i]);
        observe(model_->metrics(), replies_[i]);
        model_->count_outcome(nullptr);
        record_->add({.prompt_tokens = replies_[i].prompt_tokens,
                      .cached_tokens = replies_[i].cached_tokens,
                      .generated_tokens = replies_[i].generated_tokens,
                      .queued_ms = replies_[i].timings.queued_ms,
                      .prompt_ms = replies_[i].timings.prompt_ms,
                      .generate_ms = replies_[i].timings.generate_ms});
        return false;
    }

    const std::shared_ptr<ServedModel> model_;
    Task task_;
    const std::function<bool()> is_gone_, sends_no_more_;
    const std::shared_ptr<AnswerRecord> record_;
    std::vector<std::unique_ptr<Places::Holder>> holders_;
    std::vector<std::optional<Generation>> generations_;  // cancelled when they go; nothing: of no prompt
    std::vector<Reply> replies_;
};

HttpResponse stream_of(std::shared_ptr<Answers> answers, std::shared_ptr<AnswerWriter> writer) {
    HttpResponse response{.type = std::string(writer->type())};
    response.headers.emplace_back("Cache-Control", "no-cache");
    response.headers.emplace_back("X-Accel-Buffering", "no");
    response.stream = [answers = std::move(answers), writer = std::move(writer)](HttpSink& sink) mutable {
        try {
            answers->stream(sink, *writer);
        } catch (const Exception& error) {
            sink.write(writer->failed(answers->error_of(error)));
        } catch (const std::exception& error) {
            sink.write(writer->failed(ApiError(500, "server_error", error.what())));
        }
        answers.reset();  // the client's connection may live on
    };
    return response;
}

}  // namespace

std::string event_of(const Json& data, std::string_view name) {
    std::string text;
    if (!name.empty()) text.append("event: ").append(name).append("\n");
    return text.append("data: ").append(text_of(data)).append("\n\n");
}

std::vector<Request> choices_of(const ServedModel& model, const Request& request,
                                const AnswerOptions& options) {
    std::vector<Request> all(static_cast<std::size_t>(options.choices), request);
    if (all.size() == 1) return all;
    std::int64_t first = -1;
    try {
        first = model.seed_of(request.parameters);
    } catch (const Exception& error) {
        throw renamed(model.error_of(error), options.names);
    }
    for (std::size_t i = 1; first >= 0 && i < all.size(); ++i)
        all[i].parameters.set("seed", (first + static_cast<std::int64_t>(i)) % kRandomSeed);
    return all;
}

HttpResponse answer(std::shared_ptr<ServedModel> model, const HttpRequest& from, Task task,
                    std::unique_ptr<AnswerWriter> writer) {
    const bool streams = task.options.streams;
    auto answers = std::make_shared<Answers>(std::move(model), from, std::move(task));
    if (streams) return stream_of(std::move(answers), std::move(writer));
    try {
        const std::optional<std::vector<Reply>> replies = answers->collect();
        if (!replies) return {.status = 499};  // nobody reads it
        answers->place(*writer);
        return {.body = text_of(writer->whole(*replies))};
    } catch (const Exception& error) {
        throw answers->error_of(error);
    }
}

}  // namespace headrace::serve
