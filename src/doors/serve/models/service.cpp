#include "doors/serve/models/service.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine_memory.h"
#include "doors/serve/request/fields.h"

namespace headrace::serve {
namespace {

bool lists_models(const ServeOptions& options) {
    return !options.models_dir.empty() || !options.models_preset.empty();
}

/// Models that the program names itself are there from its start, as long as nobody asks for a limit.
ModelSchedule::Limits limits_of(const ServeOptions& options) {
    ModelSchedule::Limits limits{.models = lists_models(options) ? options.models_max : 0};
    if (options.models_memory_mib > 0)
        limits.bytes = std::uint64_t{options.models_memory_mib} << 20;
    else if (lists_models(options))
        limits.bytes = machine_memory().total / 10 * 9;
    if (const ParameterValue* most = options.parameters.find("max_waiting"))
        if (const auto* requests = std::get_if<std::int64_t>(most); requests && *requests > 0)
            limits.waiting = static_cast<std::size_t>(*requests);
    return limits;
}

AnyModel as_any(const std::shared_ptr<Resident>& resident) {
    return {std::dynamic_pointer_cast<ServedModel>(resident),
            std::dynamic_pointer_cast<EncoderModel>(resident)};
}

/// How long a request may wait at all.
ModelSchedule::Time patience_of(const Json& body) {
    auto until = ModelSchedule::Time::max();
    if (!body.is_object()) return until;
    for (const char* name : {"timeout_ms", "queue_timeout_ms"})
        if (const auto ms = Fields(body).integer(name, 0, INT64_MAX / 1'000'000'000); ms && *ms > 0)
            until = std::min(until, ModelSchedule::Clock::now() + std::chrono::milliseconds(*ms));
    return until;
}

ApiError missing(Role role) {
    switch (role) {
        case Role::text:
            return not_offered(
                "this server's model makes vectors of texts or ranks them, and writes no texts");
        case Role::scores:
            return not_offered(
                "This server does not rank. Start it with `--rank MODEL`, beside others, or with "
                "`--reranking` "
                "and one model that does");
        case Role::vectors: break;
    }
    return not_offered(
        "This server does not support embeddings. Start it with `--embed MODEL`, beside others, or with "
        "`--embeddings` and one model");
}

ApiError no_language_model() {
    return not_offered("This server has no language model. Start it with `--model` and a GGUF file");
}

ApiError unknown_model(std::string_view name) {
    return not_found(
        fmt::format("there is no model '{:.100}'; GET /v1/models lists those that there are", name));
}

/// A model of another kind would never be asked.
void check_role(const ModelSpec& spec, Role role) {
    if (const auto required = spec.required_role(); required && *required != role)
        throw Exception(Code::unsupported,
                        fmt::format("{}: the model {}; --{} takes one that {}", spec.path(), work_of(role),
                                    *required == Role::vectors ? "embed" : "rank", work_of(*required)));
}

/// The environment says what the options leave out.
ServerLog log_of(const ServeOptions& options) {
    const LogEnvironment usual = log_environment();
    LogLevel least = parse_log_level(usual.level).value();
    if (options.is_quiet)
        least = LogLevel::error;
    else if (options.parameters.find("log_level"))
        least = LogLevel::debug;  // which is the engine's: of the server's lines it leaves out none
    const std::string file = log_file(options);
    return ServerLog(options.logs_json || usual.format == "json", least, file.empty() ? usual.file : file);
}

}  // namespace

Service::Service(ServeOptions options)
    : options_(std::move(options)),
      log_(log_of(options_)),
      pool_(limits_of(options_), [this](ModelPool::Event event, const std::string& id,
                                        const std::string& text) { tell(event, id, text); }) {}

void Service::tell(ModelPool::Event event, const std::string& id, const std::string& text) const {
    for (const auto& spec : specs())
        if (spec->key() == id && !spec->is_listed() && spec->is_pinned())
            return;  // the program says what it has
    switch (event) {
        case ModelPool::Event::loading: return log_.say(LogLevel::info, id + " is being loaded");
        case ModelPool::Event::loaded:
            return log_.say(LogLevel::info, fmt::format("{} is loaded, after {}", id, text));
        case ModelPool::Event::failed: return log_.say(LogLevel::error, text);
        case ModelPool::Event::unloaded: return log_.say(LogLevel::info, id + " was given back");
    }
}

void Service::configure(ModelSpecs specs, const ServeOptions& options) {
    const ModelSchedule::Limits limits = limits_of(options);
    std::vector<ModelPool::Source> sources;
    for (const auto& spec : specs) {
        sources.push_back({.id = spec->key(),
                           .is_pinned = spec->is_pinned(),
                           .idle_limit = spec->options().idle_limit,
                           .options = spec->options_text(),
                           .file_version = [spec] { return spec->file_version(); },
                           .load = [this, spec] { return tried(*spec, [&] { return open(*spec); }); }});
        if (limits.bytes > 0 && !spec->is_graph())
            sources.back().measure = [this, spec] { return measure(*spec); };
    }
    {
        const std::lock_guard lock(mutex_);
        specs_ = std::move(specs);
    }
    pool_.set_limits(limits);
    pool_.configure(std::move(sources));
}

Status Service::load() {
    for (const std::string& note : options_.notes) log_.say(LogLevel::warn, note);
    std::vector<std::string> notes;
    HR_ASSIGN(ModelSpecs specs, model_specs(options_, notes));
    for (const std::string& note : notes) log_.say(LogLevel::warn, note);
    configure(specs, options_);
    for (const auto& spec : specs) {
        if (!spec->loads_at_start()) continue;
        try {
            pool_.acquire(spec->key());
        } catch (const ApiError& error) {
            const std::lock_guard lock(mutex_);
            const auto failure = failures_.find(spec->key());
            if (failure == failures_.end()) return Error{Code::out_of_memory, error.what()};
            return Error{failure->second.code(), failure->second.what()};
        }
    }
    return success();
}

Result<ServeOptions> Service::reload() {
    HR_ASSIGN(ServeOptions options, read_again(options_));
    std::vector<std::string> notes;
    HR_ASSIGN(ModelSpecs specs, model_specs(options, notes));
    for (const std::string& note : notes) log_.say(LogLevel::warn, note);
    configure(std::move(specs), options);
    return options;
}

void Service::stop() {
    pool_.close();
    for (const auto& resident : pool_.residents()) {
        const AnyModel model = as_any(resident);
        if (model.language) model.language->engine().cancel_all();
        if (model.graph) model.graph->encoder().cancel_all();
    }
}

/// Remembers for the operator why it fails, and throws what requests may see of that.
template <class Work>
std::invoke_result_t<Work> Service::tried(const ModelSpec& spec, const Work& work) {
    const auto told = [&](const std::exception& error) {
        std::string why = without_paths(error.what(), spec.path());
        why = without_paths(std::move(why), spec.encoder().tokenizer);
        why = without_paths_of(ParameterValue(spec.parameters()), std::move(why));
        return fmt::format("{} cannot be loaded: {}", spec.id(), why);
    };
    try {
        return work();
    } catch (const Exception& error) {
        const std::lock_guard lock(mutex_);
        failures_.insert_or_assign(spec.key(), error);
        const ApiError shown = api_error(error);
        const int status = shown.status < 500 ? 500 : shown.status;  // it is no fault of the request
        throw ApiError(status, status == 500 ? "server_error" : shown.type, told(error));
    } catch (const std::exception& error) {
        throw ApiError(500, "server_error", told(error));
    }
}

/// Sections that name the same weights and engine share them.
ModelSchedule::Size Service::measure(const ModelSpec& spec) {
    return tried(spec, [&] {
        const ModelOutline outline = outline_model(spec.path(), {.parameters = spec.parameters()});
        return ModelSchedule::Size{{spec.weights_name(), static_cast<std::uint64_t>(outline.weight_bytes)},
                                   {spec.engine_name(), static_cast<std::uint64_t>(outline.context_bytes)}};
    });
}

std::shared_ptr<Resident> Service::open(const ModelSpec& spec) {
    const ServeOptions& given = spec.options();
    if (spec.is_graph())
        return std::make_shared<EncoderModel>(TextEncoder::load(spec.path(), spec.encoder()), spec.names(),
                                              given.parallel, options_.most_per_key,
                                              encoder_records_.of(spec.id()));
    LanguageModel model = LanguageModel::load(spec.path(), {.parameters = spec.parameters()});
    check_role(spec, role_of(model.kind()));
    for (const Warning& warning : model.warnings())
        log_.say(LogLevel::warn, spec.id() + ": " + warning.message, {{"parameter", warning.parameter}});
    const ServedModel::Limits limits{given.parallel, options_.most_per_key, options_.ping_interval};
    return std::make_shared<ServedModel>(
        std::move(model), ServedModel::Names{spec.names(), spec.tags()}, limits,
        ServedModel::Given{spec.parameters(), given.suffix_first, given.prefills_assistant},
        records_.of(spec.id()));
}

ModelSpecs Service::specs() const {
    const std::lock_guard lock(mutex_);
    return specs_;
}

bool Service::has_listed() const { return lists_models(options_); }

std::shared_ptr<const ModelSpec> Service::spec_of(std::string_view name) const {
    for (const auto& spec : specs())
        if (spec->answers_to(name)) return spec;
    return nullptr;
}

AnyModel Service::in_memory(const ModelSpec& spec) const { return as_any(pool_.peek(spec.key())); }

std::vector<std::shared_ptr<ServedModel>> Service::models() const {
    std::vector<std::shared_ptr<ServedModel>> all;
    for (const auto& spec : specs())
        if (auto model = in_memory(*spec).language) all.push_back(std::move(model));
    return all;
}

std::vector<ListedModel> Service::listed() const {
    std::vector<ListedModel> all;
    for (const auto& spec : specs())
        all.push_back({spec, pool_.state(spec->key()), pool_.failure(spec->key()), in_memory(*spec)});
    return all;
}

std::shared_ptr<const ModelSpec> Service::spec_for(const Json& body, Role role) const {
    const Json* given = Fields(body).any("model");
    if (given && !given->is_string()) Fields(body).wrong("model", "a text");
    const std::string name = given ? given->get<std::string>() : std::string();
    std::shared_ptr<const ModelSpec> first, first_graph, named;
    std::size_t own = 0, others = 0;
    for (const auto& spec : specs()) {
        const bool is_named = !name.empty() && spec->answers_to(name);
        if (is_named) named = spec;
        const bool may_be_first = !spec->is_listed() || (name.empty() && own == 0);
        if ((!is_named && !may_be_first) || spec->role() != role) continue;
        if (is_named) return spec;
        ++(spec->is_listed() ? others : own);
        std::shared_ptr<const ModelSpec>& place = spec->is_graph() ? first_graph : first;
        if (!place) place = spec;
    }
    if (named && (has_listed() || first || first_graph))
        throw wrong_field("model",
                          fmt::format("'{:.100}' is not of that kind: it {}", name, work_of(named->role())));
    if (has_listed() && !name.empty()) throw unknown_model(name);
    if (own == 0 && others > 1)
        throw wrong_field("model", "is missing, and several models could answer; GET /v1/models lists them");
    if (first || first_graph) return first ? first : first_graph;
    const ModelSpecs all = specs();
    if (role == Role::text && std::ranges::all_of(all, [](const auto& spec) { return spec->is_graph(); }))
        throw no_language_model();
    throw missing(role);
}

AnyModel Service::acquire(const HttpRequest& http, const Json& body, const ModelSpec& spec) {
    const auto asked = http.query.find("autoload");
    const bool loads = asked != http.query.end() ? asked->second == "true" || asked->second == "1"
                                                 : !spec.is_listed() || options_.loads_models;
    if (!loads && pool_.state(spec.key()) == ModelPool::State::unloaded)
        throw wrong_field(
            "", fmt::format("{} is not loaded: POST /models/load does that, or ?autoload=true", spec.id()));
    return as_any(pool_.acquire(spec.key(), {.is_gone = http.is_gone, .until = patience_of(body)}));
}

AnyModel Service::any_model_for(const HttpRequest& http, const Json& body, Role role) {
    return acquire(http, body, *spec_for(body, role));
}

std::shared_ptr<ServedModel> Service::model_for(const HttpRequest& http, const Json& body, Role role) {
    return any_model_for(http, body, role).language;
}

std::shared_ptr<ServedModel> Service::language_model(const HttpRequest& http, const Json& body) {
    const Json* name = Fields(body).any("model");
    const auto named = name && name->is_string() ? spec_of(name->get_ref<const std::string&>()) : nullptr;
    if (named && named->is_graph())
        throw wrong_field("model",
                          fmt::format("'{:.100}' is a graph; a language model is needed", named->id()));
    if (named) return acquire(http, body, *named).language;
    for (const auto& spec : specs())
        if (!spec->is_graph() && !spec->is_listed()) return acquire(http, body, *spec).language;
    return model_for(http, body);
}

std::shared_ptr<const ModelSpec> Service::queried_spec(const HttpRequest& http) const {
    const auto asked = http.query.find("model");
    if (asked != http.query.end()) {
        auto spec = spec_of(asked->second);
        if (!spec || spec->is_graph()) throw unknown_model(asked->second);
        return spec;
    }
    for (const auto& spec : specs())
        if (!spec->is_graph() && !spec->is_listed()) return spec;
    if (has_listed()) throw wrong_field("model", "is missing from the query: ?model=NAME");
    throw no_language_model();
}

std::shared_ptr<ServedModel> Service::loaded_model(const ModelSpec& spec, const HttpRequest& http) {
    if (http.query.contains("autoload")) return acquire(http, Json::object(), spec).language;
    return in_memory(spec).language;
}

std::shared_ptr<ServedModel> Service::queried_model(const HttpRequest& http, bool loads) {
    const auto spec = queried_spec(http);
    if (loads) return acquire(http, Json::object(), *spec).language;
    if (auto model = loaded_model(*spec, http)) return model;
    throw wrong_field(
        "", fmt::format("{} is not loaded: a request to it does that, or ?autoload=true", spec->id()));
}

void Service::check_request(const Json& body) const {
    if (!options_.allows_templates && body.contains("chat_template"))
        throw wrong_field(
            "chat_template",
            "is not taken from requests; the server's operator may allow it by --allow-templates");
}

ChatBody Service::read_chat(const Json& body, const ServedModel& model, ChatRules rules) const {
    check_request(body);
    Json whole = body;
    if (!model.given().prefills_assistant && !body.contains("continue_final_message"))
        whole["continue_final_message"] = false;
    ChatBody chat = chat_body(whole, model.info(), rules);
    add_api_defaults(model, chat.request.parameters);
    return chat;
}

void add_api_defaults(const ServedModel& model, Parameters& parameters) {
    // Last: of a parameter's names the first that a request has counts.
    for (const char* name : {"temperature", "top_p"})
        if (!model.given().parameters.find(name) && !parameters.find(name)) parameters.set(name, 1.0);
}

std::string Service::metrics() const {
    std::string out;
    counts_.write(out);
    write_pool_metrics(out, pool_.counts());
    write_model_metrics(out, records_.all());
    write_encoder_metrics(out, encoder_records_.all());
    return out;
}

}  // namespace headrace::serve
