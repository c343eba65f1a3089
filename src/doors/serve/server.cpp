#include "doors/serve/server.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "doors/serve/routes.h"

namespace headrace::serve {
namespace {

/// The error's shape in the API that the request belongs to.
HttpResponse response_of(const ApiError& error, const HttpRequest& http) {
    HttpResponse response{.status = error.status};
    if (error.retry_after > 0)
        response.headers.emplace_back("Retry-After", fmt::format("{}", error.retry_after));
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

Server::Server(ServeOptions options) : service_(std::move(options)), access_(service_.options().keys) {}

Status Server::load() {
    const Status loaded = service_.load();
    state_ = loaded.ok() ? State::ready : State::failed;
    return loaded;
}

void Server::stop() {
    state_ = State::stopping;
    for (const auto& model : service_.models()) model->engine().cancel_all();
    for (const auto& model : service_.encoders()) model->encoder().cancel_all();
}

HttpResponse Server::handle(HttpRequest http) {
    const auto start = std::chrono::steady_clock::now();
    std::string route = "other";
    HttpResponse response;
    ++active_;
    ++handled_;
    try {
        response = dispatch(http, route);
    } catch (const ApiError& error) {
        response = response_of(error, http);
    } catch (const Exception& error) {
        response = response_of(api_error(error), http);
    } catch (const std::exception& error) {
        response = response_of(ApiError(500, "server_error", error.what()), http);
    }
    add_cors(http, response);
    response.headers.emplace_back("X-Request-Id", http.id);
    if (dialect_of(http) == Dialect::anthropic) response.headers.emplace_back("request-id", http.id);
    // Counted until it is written, or dropped: a client may leave before a stream begins.
    std::shared_ptr<void> running(
        nullptr, [this, http = HttpRequest{.method = http.method, .path = http.path, .id = http.id}, route,
                  start, status = response.status](void*) {
            --active_;
            service_.counts().add(route, status);
            log(http, {.status = status}, std::chrono::steady_clock::now() - start);
        });
    if (response.stream)
        response.stream = [write = std::move(response.stream), running](HttpSink& sink) { write(sink); };
    return response;
}

HttpResponse Server::dispatch(HttpRequest& http, std::string& route) {
    if (http.refused != 0) throw refused_by_http(http.refused, service_.options().listener.most_body_bytes);
    if (http.method == "OPTIONS") return {.status = 204};
    const Route* found = find_route(http.method, http.path);
    if (found) route = found->path;
    if (found && found->path == "/health") return health();
    const Route* of_any_method = found ? found : find_path(http.path);
    if (!of_any_method || !of_any_method->is_public) http.client = access_.client_of(http);
    if (!found) {
        if (of_any_method)
            throw ApiError(405, "invalid_request_error",
                           fmt::format("{} does not take {}", http.path.substr(0, 100), http.method));
        throw not_found(fmt::format("there is no {} {}", http.method, http.path.substr(0, 100)));
    }
    if (http.method != "GET" && http.method != "HEAD" && is_foreign(http))
        throw ApiError(403, "permission_error",
                       "pages of other sites may not ask here: --cors-origins lists those that may");
    if (http.method == "POST" && !is_json(http.header("content-type")))
        throw ApiError(415, "invalid_request_error", "the body must be application/json");
    if (state_ == State::loading && !found->works_without_model)
        throw ApiError(503, "unavailable_error", "Loading model");
    if (state_ != State::ready && !found->works_without_model)
        throw ApiError(503, "unavailable_error", "the server is stopping");
    return found->handler(service_, http);
}

/// Whether a page of another site sends it. Browsers send simple requests without asking first, and only keep
/// the answer from the page.
bool Server::is_foreign(const HttpRequest& http) const {
    const std::string_view origin = http.header("origin");
    if (origin.empty() || allows_origin(service_.options().cors_origins, origin)) return false;
    const std::string_view own = http.header("host");
    return own.empty() || authority_of(origin) != own;
}

HttpResponse Server::health() const {
    switch (state_.load()) {
        case State::loading: throw ApiError(503, "unavailable_error", "Loading model");
        case State::failed: throw ApiError(500, "server_error", "the model cannot be loaded");
        case State::stopping: throw ApiError(503, "unavailable_error", "the server is stopping");
        case State::ready: break;
    }
    for (const auto& model : service_.models())
        if (model->engine().is_lost())
            throw ApiError(500, "server_error", "a remote host of the model was lost");
    return {.body = R"({"status":"ok"})"};
}

void Server::add_cors(const HttpRequest& http, HttpResponse& response) const {
    const std::string origin(http.header("origin"));
    if (origin.empty() || !allows_origin(service_.options().cors_origins, origin)) return;
    response.headers.emplace_back("Access-Control-Allow-Origin", origin);
    response.headers.emplace_back("Vary", "Origin");
    response.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After");
    if (http.method != "OPTIONS") return;
    response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    response.headers.emplace_back(
        "Access-Control-Allow-Headers",
        "Authorization, Content-Type, X-Api-Key, Anthropic-Version, Anthropic-Beta");
    response.headers.emplace_back("Access-Control-Max-Age", "600");
}

void Server::log(const HttpRequest& http, const HttpResponse& response,
                 std::chrono::duration<double> took) const {
    const bool is_failure = response.status >= 500;
    if (service_.options().is_quiet && !is_failure) return;
    std::string line;
    const double ms = took.count() * 1e3;
    if (service_.options().logs_json)
        line = text_of({{"time", static_cast<std::int64_t>(std::time(nullptr))},
                        {"level", is_failure ? "error" : "info"},
                        {"request_id", http.id},
                        {"method", http.method},
                        {"path", http.path},
                        {"status", response.status},
                        {"ms", ms}});
    else
        line = fmt::format("{} {} {} {} {:.1f} ms", http.id, http.method, text_of(http.path.substr(0, 200)),
                           response.status, ms);
    std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace headrace::serve
