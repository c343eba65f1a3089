#include "doors/serve/client.h"

#include <cpp-httplib/httplib.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "base/log.h"
#include "base/parameter_json.h"
#include "doors/serve/request/json.h"

namespace headrace::serve {
namespace {

constexpr const char* kHelp =
    "/clear         forgets the conversation, which begins anew\n"
    "/quit, /exit\n";
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

/// Where a server's chats are.
struct Place {
    std::string origin;  ///< http://host:port
    std::string path;
};

/// A URL may end where clients of OpenAI's API want it to, at /v1, or before that.
Result<Place> place_of(std::string url) {
    constexpr std::string_view kScheme = "http://", kVersion = "/v1", kChats = "/chat/completions";
    if (url.starts_with("https://")) {
        const auto path = url.find('/', std::string_view("https://").size());
        return unsupported(
            "--server: '{}' wants TLS, and this client speaks plain HTTP only. Start a proxy on this machine "
            "that adds it, as `caddy reverse-proxy --change-host-header --from http://127.0.0.1:8081 --to "
            "{}`, "
            "and use --server http://127.0.0.1:8081{}",
            url, url.substr(0, path), path == std::string::npos ? "" : url.substr(path));
    }
    if (!url.starts_with(kScheme))
        return invalid("--server: '{}' must begin with http://, as http://127.0.0.1:8080", url);
    while (url.size() > kScheme.size() && url.ends_with('/')) url.pop_back();
    if (url.ends_with(kChats)) url.resize(url.size() - kChats.size());
    const auto slash = url.find('/', kScheme.size());
    Place place{.origin = url.substr(0, slash), .path = slash == std::string::npos ? "" : url.substr(slash)};
    if (place.origin.size() == kScheme.size())
        return invalid("--server: '{}' names no host, as http://127.0.0.1:8080 does", url);
    if (!place.path.ends_with(kVersion)) place.path += kVersion;
    place.path += kChats;
    return place;
}

class Conversation {
public:
    Conversation(const ClientOptions& options, const Place& place)
        : options_(options), path_(place.path), client_(place.origin) {
        client_.set_read_timeout(kPatience);
        client_.set_connection_timeout(std::chrono::seconds(10));
        if (!options.key.empty()) client_.set_bearer_token_auth(options.key);
        clear();
    }

    void clear() {
        messages_ = Json::array();
        if (!options_.system.empty()) messages_.push_back({{"role", "system"}, {"content", options_.system}});
    }

    /// A line that starts with a slash.
    Status command(const std::string& line) {
        if (line == "/help")
            std::fputs(kHelp, stdout);
        else if (line == "/clear")
            clear();
        else
            return invalid("there is no {} with --server; /help lists the commands", line);
        return success();
    }

    Status say(const std::string& text) {
        messages_.push_back({{"role", "user"}, {"content", text}});
        Json body = json_object_of<Json>(options_.parameters);
        body["messages"] = messages_;
        body["stream"] = true;
        if (!options_.model.empty()) body["model"] = options_.model;
        httplib::Request request{.method = "POST", .path = path_};
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
        const char* const remedy = result->status == 401 ? ". --api-key brings one" : "";
        return failure(Code::backend_failure, "{}: HTTP {}{}{}{}", options_.url, result->status,
                       message.empty() ? "" : ": ", message, remedy);
    }

    const ClientOptions& options_;
    const std::string path_;
    httplib::Client client_;
    Json messages_;
};

}  // namespace

Status chat(const ClientOptions& options) {
    HR_ASSIGN(const Place place, place_of(options.url));
    Conversation conversation(options, place);
    for (const std::string& prompt : options.prompts) HR_TRY(conversation.say(prompt));
    if (!options.prompts.empty()) return success();
    const bool interactive = isatty(STDIN_FILENO);
    std::string line;
    while (interactive && std::printf("> "), std::fflush(stdout), std::getline(std::cin, line)) {
        if (line.empty()) continue;
        if (line == "/quit" || line == "/exit") break;
        const bool is_command = line[0] == '/';
        const Status said = is_command ? conversation.command(line) : conversation.say(line);
        if (!interactive || options.single_turn) HR_TRY(said);  // whoever reads no messages reads the status
        if (!said.ok()) tell_user(said.error().message);
        if (options.single_turn && !is_command) break;
    }
    return success();
}

}  // namespace headrace::serve
