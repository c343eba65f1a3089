#include "doors/serve/routes.h"

#include "doors/serve/api/anthropic.h"
#include "doors/serve/api/llama_server.h"
#include "doors/serve/api/ollama.h"
#include "doors/serve/api/openai.h"
#include "doors/serve/api/page.h"

namespace headrace::serve {
namespace {

/// Two APIs list models at one path: Anthropic's clients say that they are such.
bool is_of_anthropic(const HttpRequest& http) {
    const std::string_view path = http.path;
    if (path.starts_with("/v1/messages")) return true;
    return path.starts_with("/v1/models") && !http.header("anthropic-version").empty();
}

HttpResponse list_models(Service& service, const HttpRequest& http) {
    return is_of_anthropic(http) ? anthropic_models(service, http) : openai_models(service, http);
}

HttpResponse show_model(Service& service, const HttpRequest& http) {
    return is_of_anthropic(http) ? anthropic_model(service, http) : openai_model(service, http);
}

const Route kRoutes[] = {
    {"GET", "/health", nullptr, true, true},
    {"GET", "/", page, true, true},
    {"GET", "/index.html", page, true, true},

    {"GET", "/v1/models", list_models},
    {"GET", "/models", list_models},
    {"GET", "/v1/models/*", show_model},
    {"POST", "/models/load", load_model},
    {"POST", "/models/unload", unload_model},
    {"POST", "/v1/chat/completions", openai_chat},
    {"POST", "/chat/completions", openai_chat},
    {"POST", "/v1/chat/completions/input_tokens", openai_chat_tokens},
    {"POST", "/chat/completions/input_tokens", openai_chat_tokens},
    {"POST", "/v1/completions", openai_completion},
    {"POST", "/v1/embeddings", openai_embeddings},
    {"POST", "/v1/responses", openai_responses},
    {"POST", "/responses", openai_responses},
    {"POST", "/v1/responses/input_tokens", openai_response_tokens},
    {"POST", "/responses/input_tokens", openai_response_tokens},

    {"POST", "/v1/messages", anthropic_messages},
    {"POST", "/v1/messages/count_tokens", anthropic_tokens},

    {"POST", "/v1/rerank", rerank},
    {"POST", "/v1/reranking", rerank},
    {"POST", "/rerank", rerank},
    {"POST", "/reranking", rerank},

    {"POST", "/completion", completion},
    {"POST", "/completions", completion},
    {"POST", "/infill", infill},
    {"POST", "/embedding", embeddings},
    {"POST", "/embeddings", embeddings},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"GET", "/props", props},
    {"POST", "/props", change_props},
    {"GET", "/slots", slots},
    {"POST", "/slots/*", change_slot},
    {"GET", "/lora-adapters", adapters},
    {"POST", "/lora-adapters", change_adapters},
    {"GET", "/metrics", metrics},

    {"POST", "/api/chat", ollama_chat},
    {"POST", "/api/generate", ollama_generate},
    {"POST", "/api/embed", ollama_embed},
    {"POST", "/api/embeddings", ollama_old_embeddings},
    {"GET", "/api/tags", ollama_tags},
    {"POST", "/api/show", ollama_show},
    {"GET", "/api/ps", ollama_running},
    {"GET", "/api/version", ollama_version, true, true},
};

bool matches(std::string_view pattern, std::string_view path) {
    if (!pattern.ends_with("/*")) return pattern == path;
    pattern.remove_suffix(1);
    return path.size() > pattern.size() && path.starts_with(pattern);
}

/// The same place under llama-server's other name.
std::string_view usual(std::string_view path) { return path == "/v1/health" ? "/health" : path; }

}  // namespace

const Route* find_route(std::string_view method, std::string_view path) {
    if (method == "HEAD") method = "GET";
    for (const Route& route : kRoutes)
        if (route.method == method && matches(route.path, usual(path))) return &route;
    return nullptr;
}

const Route* find_path(std::string_view path) {
    for (const Route& route : kRoutes)
        if (matches(route.path, usual(path))) return &route;
    return nullptr;
}

std::string methods_of(std::string_view path) {
    std::string all;
    for (const Route& route : kRoutes)
        if (matches(route.path, usual(path)) && all.find(route.method) == std::string::npos)
            all.append(route.method).append(route.method == "GET" ? ", HEAD, " : ", ");
    return all + "OPTIONS";
}

Dialect dialect_of(const HttpRequest& http) {
    if (is_of_anthropic(http)) return Dialect::anthropic;
    return http.path.starts_with("/api/") ? Dialect::ollama : Dialect::openai;
}

Json error_in(Dialect dialect, const ApiError& error, std::string_view request_id) {
    switch (dialect) {
        case Dialect::anthropic: {
            Json shape = anthropic_error(error);
            shape["request_id"] = request_id;
            return shape;
        }
        case Dialect::ollama: return {{"error", error.what()}};
        case Dialect::openai: break;
    }
    return openai_error(error);
}

}  // namespace headrace::serve
