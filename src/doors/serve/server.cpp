#include "doors/serve/server.h"

#include <fmt/format.h>

#include <memory>

#include "doors/serve/origins.h"
#include "doors/serve/routes.h"

namespace headrace::serve {
namespace {

constexpr int kLoadingSeconds = 2;  // after which a client may ask again

/// The error's shape in the API that the request belongs to.
HttpResponse response_of(const ApiError& error, const HttpRequest& http) {
    http.record->set_error(error.what());
    HttpResponse response{.status = error.status};
    if (error.retry_after > 0)
        response.headers.emplace_back("Retry-After", fmt::format("{}", error.retry_after));
    if (!error.allowed.empty()) response.headers.emplace_back("Allow", error.allowed);
    if (error.status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    response.body = text_of(error_in(dialect_of(http), error, http.id));
    return response;
}

ApiError refused_by_http(int status, std::size_t most_body) {
    switch (status) {
        case 413:
            return {
                413, "invalid_request_error",
                fmt::format("the body is larger than {} bytes, which is the most that is read", most_body)};
        case 503: return overloaded("all connections are in use");
        case 404: return not_found("there is nothing here");
        case 416:
            return {416, "invalid_request_error",
                    "the header Range cannot be read; leave it out: answers are not given in parts"};
        default:
            return {status, "invalid_request_error",
                    fmt::format("HTTP {}: the request cannot be read", status)};
    }
}

bool is_json(std::string_view type) {
    const std::string_view kind = type.substr(0, type.find(';'));
    return kind.empty() || kind == "application/json" || kind == "text/json" || kind.ends_with("+json") ||
           kind == "text/plain" || kind == "application/x-www-form-urlencoded";  // curl --data says that
}

}  // namespace

Server::Server(ServeOptions options)
    : service_(std::move(options)),
      is_for_this_machine_(are_loopback(service_.options().listener.hosts)),
      access_(std::make_shared<const Access>(service_.options().keys)) {}

Status Server::load() {
    const Status loaded = service_.load();
    state_ = loaded.ok() ? State::ready : State::failed;
    return loaded;
}

void Server::reload() {
    if (state_ != State::ready) return;
    const Result<ServeOptions> read = service_.reload();
    if (!read.ok())
        return log().say(LogLevel::error, "the configuration stays as it was: " + read.error().message);
    {
        auto access = std::make_shared<const Access>(read.value().keys, this->access().get());
        const std::lock_guard lock(access_mutex_);
        access_.swap(access);
    }
    log().say(LogLevel::info,
              fmt::format("the configuration was read again: {} models", service_.listed().size()));
}

std::shared_ptr<const Access> Server::access() const {
    const std::lock_guard lock(access_mutex_);
    return access_;
}

void Server::refuse_requests() { state_ = State::stopping; }

void Server::stop() {
    refuse_requests();
    service_.stop();
}

HttpResponse Server::handle(HttpRequest http) {
    const auto start = std::chrono::steady_clock::now();
    std::string route = "other";
    ++active_;
    ++handled_;
    HttpResponse response = respond(http, route);
    add_cors(http, response);
    response.headers.emplace_back("X-Request-Id", http.id);
    if (dialect_of(http) == Dialect::anthropic) response.headers.emplace_back("request-id", http.id);
    // Counted until it is written, or dropped: a client may leave before a stream begins.
    HttpRequest noted{.method = http.method, .path = http.path, .id = http.id, .record = http.record};
    std::shared_ptr<void> running(
        nullptr, [this, noted = std::move(noted), route, start, status = response.status](void*) {
            --active_;
            service_.counts().add(route, status);
            note(noted, status, std::chrono::steady_clock::now() - start);
        });
    if (response.stream) {
        http.record->set_error(kClientIsGone);  // unless it begins
        response.stream = [write = std::move(response.stream), record = http.record,
                           running](HttpSink& sink) {
            record->set_error({});
            write(sink);
        };
    }
    return response;
}

/// In each API's shape whatever goes wrong.
HttpResponse Server::respond(HttpRequest& http, std::string& route) {
    const std::string& prefix = service_.options().api_prefix;
    const bool is_below = http.path.starts_with(prefix + "/");
    if (is_below) http.path.erase(0, prefix.size());
    try {
        if (!is_below && http.refused == 0) {
            // The page asks for what lies beside it.
            if (http.path == prefix && !prefix.empty())
                return {.status = 308, .headers = {{"Location", prefix + "/"}}};
            if (http.method != "OPTIONS") throw not_found("there is nothing here");
        }
        return dispatch(http, route);
    } catch (const ApiError& error) {
        return response_of(error, http);
    } catch (const Exception& error) {
        return response_of(api_error(error), http);
    } catch (const std::exception& error) {
        return response_of(ApiError(500, "server_error", error.what()), http);
    }
}

HttpResponse Server::dispatch(HttpRequest& http, std::string& route) {
    if (http.refused != 0) throw refused_by_http(http.refused, service_.options().listener.most_body_bytes);
    check_host(http);
    if (http.method == "OPTIONS") return {.status = 204};
    const Route* found = find_route(http.method, http.path);
    if (found) route = found->path;
    if (found && found->path == "/health") return health();
    const Route* of_any_method = found ? found : find_path(http.path);
    if (!of_any_method || !of_any_method->is_public) http.client = access()->client_of(http);
    if (!found) {
        if (of_any_method) {
            ApiError error(405, "invalid_request_error",
                           fmt::format("{} does not take {}", http.path.substr(0, 100), http.method));
            error.allowed = methods_of(http.path);
            throw error;
        }
        throw not_found(fmt::format("there is no {} {}", http.method, http.path.substr(0, 100)));
    }
    if (http.method != "GET" && http.method != "HEAD" && is_foreign(http))
        throw ApiError(403, "permission_error",
                       "pages of other sites may not ask here: --cors-origins lists those that may");
    if (http.method == "POST" && !is_json(http.header("content-type")))
        throw ApiError(415, "invalid_request_error", "the body must be application/json");
    if (!found->works_without_model) check_state();
    return found->handler(service_, http);
}

/// A key, which pages of other sites lack, makes this check needless.
void Server::check_host(const HttpRequest& http) const {
    const std::string_view host = http.header("host");
    if (!is_for_this_machine_ || access()->asks_for_keys()) return;
    if (allows_host(service_.options().allowed_hosts, host)) return;
    throw ApiError(
        403, "permission_error",
        fmt::format("this server is called localhost, and not '{:.100}': --allowed-hosts names what "
                    "else it may be called",
                    host));
}

/// Whether a page of another site sends it. Browsers send simple requests without asking first, and only keep
/// the answer from the page.
bool Server::is_foreign(const HttpRequest& http) const {
    const std::string_view origin = http.header("origin");
    if (origin.empty() || allows_origin(service_.options().cors_origins, origin)) return false;
    const std::string_view own = http.header("host");
    return own.empty() || authority_of(origin) != own;
}

/// That the models are there.
void Server::check_state() const {
    switch (state_.load()) {
        case State::loading: throw overloaded("Loading model", kLoadingSeconds);
        case State::failed: throw ApiError(500, "server_error", "the model cannot be loaded");
        case State::stopping: throw overloaded("the server is stopping", kLoadingSeconds);
        case State::ready: break;
    }
}

HttpResponse Server::health() const {
    check_state();
    for (const auto& model : service_.models()) {
        if (model->engine().is_lost())
            throw ApiError(500, "server_error", "a remote host of the model was lost");
        if (model->is_failing())
            throw ApiError(500, "server_error",
                           fmt::format("the last requests to {} failed: {}", model->id(), model->failure()));
    }
    return {.body = R"({"status":"ok"})"};
}

void Server::add_cors(const HttpRequest& http, HttpResponse& response) const {
    const std::string origin(http.header("origin"));
    if (origin.empty() || !allows_origin(service_.options().cors_origins, origin)) return;
    response.headers.emplace_back("Access-Control-Allow-Origin", origin);
    response.headers.emplace_back("Vary", "Origin");
    response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After");
    const ServeOptions& options = service_.options();
    if (options.cors_credentials) response.headers.emplace_back("Access-Control-Allow-Credentials", "true");
    if (http.method != "OPTIONS") return;
    response.headers.emplace_back("Access-Control-Allow-Methods", options.cors_methods);
    response.headers.emplace_back("Access-Control-Allow-Headers", options.cors_headers);
    response.headers.emplace_back("Access-Control-Max-Age", "600");
}

void Server::note(const HttpRequest& http, int status, std::chrono::duration<double> took) const {
    // Probes ask all the time: of what they hear, only a failure is news.
    if (http.path == "/health" && (status == 200 || status == 503)) return;
    const AnswerRecord::Numbers answer = http.record->numbers();
    const double ms = took.count() * 1e3;
    Json fields = {{"request_id", http.id},
                   {"method", http.method},
                   {"path", http.path},
                   {"status", status},
                   {"ms", ms}};
    std::string text = fmt::format("{} {} {} {} {:.1f} ms", http.id, http.method,
                                   text_of(http.path.substr(0, 200)), status, ms);
    if (!answer.error.empty()) {
        constexpr std::size_t kLongest = 300;
        fields["error"] = answer.error.substr(0, kLongest);
        text += ": " + text_of(fields["error"]);
    } else if (!answer.model.empty()) {
        fields.update({{"model", answer.model},
                       {"prompt_tokens", answer.prompt_tokens},
                       {"cached_tokens", answer.cached_tokens},
                       {"generated_tokens", answer.generated_tokens},
                       {"queued_ms", answer.queued_ms},
                       {"prompt_ms", answer.prompt_ms},
                       {"generate_ms", answer.generate_ms}});
        text += fmt::format(", {}: {} tokens of prompt ({} remembered), {} written", answer.model,
                            answer.prompt_tokens, answer.cached_tokens, answer.generated_tokens);
    }
    log().note(status >= 500 ? LogLevel::error : LogLevel::info, text, fields);
}

}  // namespace headrace::serve
