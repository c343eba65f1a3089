#include "doors/serve/models/served_model.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/content_hash.h"
#include "base/replace_all.h"
#include "doors/serve/request/chat_request.h"

namespace headrace::serve {
namespace {

std::size_t size_of(const Request& request) {
    std::size_t bytes = request.prompt.size();
    for (const Message& message : request.messages) {
        bytes += message.content.size();
        for (const std::string& part : message.parts) bytes += part.size();
    }
    return bytes;
}

/// What a chat's template says of the tools' parameters, if it is that; the engine names no field of it.
std::string schema_error_in(const Exception& error) {
    const std::string message = error.what();
    const std::size_t at = message.find("JSON schema error at ");
    return error.parameter().empty() && at != std::string::npos ? message.substr(at) : std::string();
}

/// A client's session for the engine, which takes no longer name than a request may have.
std::string name_apart(const std::string& client, const std::string& name) {
    std::string whole = client + ":" + name;
    if (whole.size() <= kLongestSessionName || name.size() > kLongestSessionName)
        return whole;  // too long a one is refused
    const ContentHash hash = content_hash(name.data(), name.size());
    return fmt::format("{}:{:016x}{:016x}", client, hash.high, hash.low);
}

/// Where a call in a history has arguments that are no JSON; empty where none has.
std::string unreadable_call(const std::vector<Message>& messages) {
    for (std::size_t i = 0; i < messages.size(); ++i)
        for (std::size_t j = 0; j < messages[i].tool_calls.size(); ++j)
            if (!Json::accept(messages[i].tool_calls[j].arguments))
                return fmt::format("messages[{}].tool_calls[{}].function.arguments", i, j);
    return {};
}

}  // namespace

ServedModel::ServedModel(LanguageModel model, Names names, const Limits& limits, Given given,
                         std::shared_ptr<LanguageRecord> record)
    : loaded_at(std::time(nullptr)),
      modified_at(change_of(model.info().path)),
      model_(std::move(model)),
      info_(model_.info()),
      kind_(model_.kind()),
      warnings_(model_.warnings()),
      names_(std::move(names)),
      given_(std::move(given)),
      places_(limits.places, limits.most_per_client),
      ping_interval_(limits.ping_interval),
      record_(record ? std::move(record) : std::make_shared<LanguageRecord>(id())) {
    for (const auto& [path, scale] : info_.adapters) adapter_scales_.push_back(scale);
    record_->begin(this, model_);
}

ServedModel::~ServedModel() { record_->end(this); }

std::string ServedModel::text_of_metadata(std::string_view name) const {
    const ParameterValue* value = info_.metadata.find(name);
    const auto* text = value ? std::get_if<std::string>(value) : nullptr;
    return text ? *text : std::string();
}

std::chrono::system_clock::time_point change_of(const std::string& path) {
    struct stat file {};
    if (stat(path.c_str(), &file) != 0) return std::chrono::system_clock::now();
    return std::chrono::system_clock::from_time_t(file.st_mtime);
}

bool ServedModel::answers_to(std::string_view name) const {
    return std::ranges::find(names_.aliases, name) != names_.aliases.end();
}

std::vector<float> ServedModel::adapter_scales() const {
    const std::lock_guard lock(mutex_);
    return adapter_scales_;
}

void ServedModel::set_adapter_scales(std::vector<float> scales) {
    const std::lock_guard lock(mutex_);
    adapter_scales_ = std::move(scales);
    has_own_scales_ = true;
}

void ServedModel::add_adapters(Parameters& parameters) const {
    const std::lock_guard lock(mutex_);
    if (!has_own_scales_ || parameters.find("lora")) return;
    std::vector<ParameterValue> all;
    for (std::size_t i = 0; i < adapter_scales_.size(); ++i)
        all.push_back(Parameters{{"id", static_cast<std::int64_t>(i)}, {"scale", adapter_scales_[i]}});
    parameters.set("lora", std::move(all));
}

void ServedModel::count_outcome(const Exception* error) {
    const bool is_engines = error && (error->code() == Code::backend_failure || error->code() == Code::io ||
                                      error->code() == Code::out_of_memory);
    if (error && !is_engines) return;
    const std::lock_guard lock(mutex_);
    failures_ = error ? failures_ + 1 : 0;
    if (error) failure_ = without_paths(error->what(), info_.path);
}

bool ServedModel::is_failing() const {
    constexpr int kMany = 3;  // one may be an accident
    const std::lock_guard lock(mutex_);
    return failures_ >= kMany;
}

std::string ServedModel::failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
}

std::int64_t ServedModel::seed_of(const Parameters& parameters) const {
    const Parameters all = model_.effective(parameters);
    const ParameterValue* seed = all.find("seed");
    const auto* number = seed ? std::get_if<std::int64_t>(seed) : nullptr;
    return number && *number != kRandomSeed ? *number : -1;
}

std::string without_paths(std::string message, std::string_view path) {
    const std::filesystem::path whole = path;
    const std::string name = whole.filename().string();
    if (!path.empty() && name != path) replace_all(message, path, name);
    // Files beside it are named, too: a tokenizer, the other parts of a model.
    const std::string folder = whole.parent_path().string() + "/";
    if (whole.is_absolute() && folder != "//") replace_all(message, folder, "");
    return message;
}

std::string without_paths_of(const ParameterValue& value, std::string message) {
    if (const auto* text = std::get_if<std::string>(&value)) {
        const std::filesystem::path path = *text;
        return path.is_absolute() && path.has_filename() ? without_paths(std::move(message), *text) : message;
    }
    if (const auto* list = std::get_if<std::vector<ParameterValue>>(&value))
        for (const ParameterValue& one : *list) message = without_paths_of(one, std::move(message));
    if (const auto* object = std::get_if<Parameters>(&value))
        for (const auto& [name, one] : object->entries()) message = without_paths_of(one, std::move(message));
    return message;
}

std::string ServedModel::session_of(const Parameters& parameters) const {
    const Parameters all = model_.effective(parameters);
    const ParameterValue* session = all.find("session_id");
    const auto* name = session ? std::get_if<std::string>(session) : nullptr;
    return name ? *name : std::string();
}

void ServedModel::keep_session_apart(Parameters& parameters, const std::string& client) const {
    const std::string name = session_of(parameters);
    if (name.empty()) return;
    Parameters apart = {{"session_id", name_apart(client, name)}};  // of several spellings the first counts
    for (const auto& [other, value] : parameters.entries())
        if (other != "session_id") apart.set(other, value);
    parameters = std::move(apart);
}

RenderedPrompt ServedModel::render(const Request& request, const FieldNames& names) const {
    try {
        return model_.render(request);
    } catch (const Exception& error) {
        throw renamed(error_of(error, &request), names);
    }
}

std::vector<Warning> ServedModel::new_warnings(const Reply& reply) const {
    std::vector<Warning> fresh;
    for (const Warning& warning : reply.warnings)
        if (std::ranges::none_of(warnings_, [&](const Warning& other) {
                return other.parameter == warning.parameter && other.message == warning.message;
            }))
            fresh.push_back(warning);
    return fresh;
}

/// About, of a request that is large.
std::int64_t ServedModel::count_tokens(const Request& request) const {
    // Reading megabytes only to count them would take seconds: four bytes are a usual token.
    constexpr std::size_t kMostCounted = 1 << 20;
    const std::size_t size = size_of(request);
    const auto about = std::max(info_.request_tokens + 1, static_cast<std::int64_t>(size / 4));
    if (size > kMostCounted) return about;
    if (!request.tokens.empty()) return static_cast<std::int64_t>(request.tokens.size());
    try {
        return static_cast<std::int64_t>(model_.render(request).tokens.size());
    } catch (const Exception&) {
        return about;
    }
}

ApiError ServedModel::error_of(const Exception& error, const Request* request) const {
    if (request && request->parameters.find("tools"))
        if (const std::string wrong = schema_error_in(error); !wrong.empty())
            return wrong_field("tools", "have a schema that no call can follow: " + wrong);
    if (request && error.parameter().empty() && error.code() == Code::invalid_argument)
        if (const std::string place = unreadable_call(request->messages); !place.empty())
            return wrong_field(place, "is no JSON, and this model's chat template shows calls as objects");
    const ApiError whole = api_error(error);
    ApiError shown(whole.status, whole.type, without_paths(error.what(), info_.path), error.parameter());
    shown.retry_after = whole.retry_after;
    if (error.code() != Code::prompt_too_long || !request) return shown;
    shown.extra["n_prompt_tokens"] = count_tokens(*request);
    shown.extra["n_ctx"] = info_.request_tokens;
    return shown;
}

void observe(ModelMetrics& metrics, const Reply& reply) {
    const Timings& times = reply.timings;
    metrics.queue.observe(times.queued_ms / 1e3);
    metrics.whole.observe((times.queued_ms + times.prompt_ms + times.generate_ms) / 1e3);
    if (reply.generated_tokens < 1) return;
    metrics.first_token.observe((times.queued_ms + times.prompt_ms) / 1e3);
    const auto between = static_cast<std::uint64_t>(reply.generated_tokens - 1);
    if (between > 0)
        metrics.between_tokens.observe(times.generate_ms / 1e3 / static_cast<double>(between), between);
}

}  // namespace headrace::serve
