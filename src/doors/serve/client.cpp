#include "doors/serve/client.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/parameter_json.h"
#include "doors/serve/request/json.h"

namespace headrace::serve {
namespace {

constexpr std::chrono::hours kPatience(1);  // for an answer: a long prompt may be read first

/// Puts the events of a stream together and shows their text.
class Events {
public:
    void take(std::string_view bytes) {
        rest_ += bytes;
        for (std::size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1)) {
            std::string_view line = std::string_view(rest_).substr(0, end);
            if (line.ends_with('\r')) line.remove_suffix(1);
            if (line.starts_with("data: ")) read(line.substr(6));
        }
    }
    const std::string& answer() const { return answer_; }
    const std::string& error() const { return error_; }

private:
    void read(std::string_view data) {
        const Json event = Json::parse(data, nullptr, false);
        if (!event.is_object()) return;
        if (const auto error = event.find("error"); error != event.end() && error->is_object())
            error_ = error->value("message", "the server reports an error without a message");
        const auto choices = event.find("choices");
        if (choices == event.end() || !choices->is_array() || choices->empty()) return;
        const Json delta = choices->front().value("delta", Json::object());
        show(delta, "reasoning_content", nullptr);
        show(delta, "content", &answer_);
    }
    static void show(const Json& delta, const char* key, std::string* kept) {
        const auto text = delta.find(key);
        if (text == delta.end() || !text->is_string()) return;
        std::fputs(text->get_ref<const std::string&>().c_str(), stdout);
        std::fflush(stdout);
        if (kept) *kept += text->get_ref<const std::string&>();
    }

    std::string rest_, answer_, error_;
};

class Conversation {
public:
    explicit Conversation(const ClientOptions& options) : options_(options), client_(options.url) {
        client_.set_read_timeout(kPatience);
        client_.set_connection_timeout(std::chrono::seconds(10));
        if (!options.key.empty()) client_.set_bearer_token_auth(options.key);
        if (!options.system.empty()) messages_.push_back({{"role", "system"}, {"content", options.system}});
    }

    Status say(const std::string& text) {
        messages_.push_back({{"role", "user"}, {"content", text}});
        Json body = json_object_of<Json>(options_.parameters);
        body["messages"] = messages_;
        body["stream"] = true;
        httplib::Request request{.method = "POST", .path = "/v1/chat/completions"};
        request.set_header("Content-Type", "application/json");
        request.body = text_of(body);
        Events events;
        std::string whole;  // of an error, which is no stream
        request.content_receiver = [&](const char* data, std::size_t size, std::size_t, std::size_t) {
            whole.append(data,
                         std::min<std::size_t>(size, 65536 - std::min<std::size_t>(whole.size(), 65536)));
            events.take({data, size});
            return true;
        };
        const httplib::Result result = client_.send(request);
        std::printf("\n");
        std::fflush(stdout);
        const Status status = check(result, whole, events.error());
        if (status.ok())
            messages_.push_back({{"role", "assistant"}, {"content", events.answer()}});
        else
            messages_.erase(messages_.size() - 1);
        return status;
    }

private:
    Status check(const httplib::Result& result, const std::string& whole, const std::string& error) const {
        if (!result)
            return failure(Code::io, "{}: {}. Is a server there? headrace serve model.gguf starts one",
                           options_.url, httplib::to_string(result.error()));
        if (!error.empty()) return failure(Code::backend_failure, "{}: {}", options_.url, error);
        if (result->status == 200) return success();
        const Json body = Json::parse(whole, nullptr, false);
        std::string message;
        if (body.is_object() && body.contains("error") && body["error"].is_object())
            message = body["error"].value("message", "");
        return failure(Code::backend_failure, "{}: HTTP {}{}{}", options_.url, result->status,
                       message.empty() ? "" : ": ", message);
    }

    const ClientOptions& options_;
    httplib::Client client_;
    Json messages_ = Json::array();
};

}  // namespace

Status chat(const ClientOptions& options) {
    if (!options.url.starts_with("http://"))
        return invalid("--server: '{}' must begin with http://", options.url);
    Conversation conversation(options);
    for (const std::string& prompt : options.prompts) HR_TRY(conversation.say(prompt));
    if (!options.prompts.empty()) return success();
    const bool interactive = isatty(STDIN_FILENO);
    std::string line;
    while (interactive && std::printf("> "), std::fflush(stdout), std::getline(std::cin, line)) {
        if (line.empty()) continue;
        if (line == "/quit" || line == "/exit") break;
        if (const Status said = conversation.say(line); !said.ok())
            std::fprintf(stderr, "%s\n", said.error().message.c_str());
    }
    return success();
}

}  // namespace headrace::serve
