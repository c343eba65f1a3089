#pragma once
#include <memory>
#include <string>
#include <vector>

#include "doors/serve/http/message.h"
#include "doors/serve/models/served_model.h"
#include "doors/serve/request/chat_request.h"
#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// What an API makes of answers: JSON, or events of a stream. A request has one of its own.
class AnswerWriter {
public:
    virtual ~AnswerWriter() = default;
    /// The body, of answers to all that was asked.
    virtual Json whole(const std::vector<Reply>& replies) = 0;

    /// Where `/slots` shows an answer; -1 while it waits. Said before more of it is written.
    virtual void placed(std::size_t, int) {}

    // For streams; each returns what is sent, which may be nothing.

    virtual std::string_view type() const { return "text/event-stream"; }
    virtual std::string begin() { return {}; }
    virtual std::string part(std::size_t choice, const MessagePart& part) = 0;
    virtual std::string end(std::size_t choice, const Reply& reply) = 0;
    virtual std::string finish(const std::vector<Reply>& replies) = 0;
    virtual std::string failed(const ApiError& error) = 0;
    /// Now and then while nothing else comes.
    virtual std::string ping() const { return ":\n\n"; }
};

/// "data: {...}\n\n", of an event of that name where there is one.
std::string event_of(const Json& data, std::string_view name = {});

/// What a handler found in a request.
struct Task {
    std::vector<Request> requests;  ///< answered at the same time
    AnswerOptions options;
};

/// One request for each choice, with seeds one after the other.
std::vector<Request> choices_of(const ServedModel& model, const Request& request,
                                const AnswerOptions& options);

/// Starts the answers and gives them as the writer has them. Ends them when the client goes away. Throws
/// ApiError for what can be known before the first token.
HttpResponse answer(std::shared_ptr<ServedModel> model, const HttpRequest& from, Task task,
                    std::unique_ptr<AnswerWriter> writer);

}  // namespace headrace::serve
