#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "doors/serve/models/service.h"
#include "doors/serve/request/fields.h"

// What Ollama's paths have in common.
namespace headrace::serve {

/// As RFC 3339 has it.
std::string timestamp(std::chrono::system_clock::time_point time = std::chrono::system_clock::now());

/// Whether a model has that name, with or without Ollama's tag for the usual one.
template <class Model>
bool is_named(const Model& model, std::string_view name) {
    if (model.answers_to(name)) return true;
    constexpr std::string_view kTag = ":latest";
    return name.ends_with(kTag) && model.answers_to(name.substr(0, name.size() - kTag.size()));
}

/// The language model that a body names, which writes texts. Ollama says so where it is not there, and does
/// not take another one.
std::shared_ptr<const ModelSpec> language_spec(const Service& service, const Json& body);
/// The same in memory.
std::shared_ptr<ServedModel> named_language(Service& service, const HttpRequest& http, const Json& body);
/// A name is a language model's before it is a graph's. Throws ApiError 404.
std::shared_ptr<const ModelSpec> named_spec(const Service& service, std::string_view name,
                                            bool graphs_first = false);

}  // namespace headrace::serve
