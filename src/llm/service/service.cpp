#include "llm/service/service.h"

#include <nlohmann/json.hpp>

#include <filesystem>

#include "base/utf8.h"
#include "llm/log/log.h"
#include "llm/parameters/parameters.h"
#include "llm/service/load_notes.h"
#include "llm/service/reply.h"
#include "llm/service/service_state.h"

namespace headrace::llm {
namespace {

/// For models that guests bring along: their own templates are programs.
constexpr auto kPlainTemplate =
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:";

}  // namespace

Service::Service(Settings settings, Notes notes)
    : settings_(std::move(settings)), notes_(std::move(notes)), sessions_(settings_.session) {}

Service::~Service() { cancel_all(); }

void Service::cancel_all() {
    std::vector<ContextId> ids;
    {
        const std::lock_guard lock(mutex_);
        closing_ = true;
        for (const auto& [id, context] : contexts_) ids.push_back(id);
    }
    for (const ContextId id : ids) static_cast<void>(cancel(id));  // one that was closed meanwhile needs none
}

Result<std::unique_ptr<Service>> Service::create(std::string_view config, const Settings& defaults,
                                                 std::string_view above) {
    start_llama();
    Notes notes;
    Settings settings = defaults;
    settings.lenient = false;
    HR_ASSIGN(settings, with_parameters(settings, config, Level::service, notes));
    const std::string own_file = settings.log.file;
    settings.lenient = defaults.lenient;
    HR_ASSIGN(settings, with_parameters(settings, above, Level::service, notes));
    if (!config.empty() || !above.empty()) {
        Status logged = set_log(settings.log);
        if (!logged.ok() && settings.lenient && settings.log.file != own_file) {
            notes.push_back({"log_file", logged.error().message + "; it is left out"});
            settings.log.file = own_file;
            logged = set_log(settings.log);
        }
        HR_TRY(logged);
    }
    log_notes(notes);
    return std::unique_ptr<Service>(new Service(std::move(settings), std::move(notes)));
}

/// A guest may write a load's configuration: the files it names are confined as the model's own.
Result<Settings> Service::load_settings(std::string_view config, Notes& notes, GuestNames& names) const {
    names.add_own(settings_.context.draft_model);
    for (const auto& [path, scale] : settings_.model.lora) names.add_own(path);
    if (config.empty()) return settings_;
    HR_ASSIGN(Settings settings, with_parameters(settings_, config, Level::model, notes));
    // The files that the host chose for all models are its own affair.
    const auto confine = [&](std::string& file) -> Status {
        const std::string name = file;
        HR_ASSIGN(file, confined_path(name));
        names.add(file, name);
        return success();
    };
    if (settings.context.draft_model != settings_.context.draft_model)
        HR_TRY(confine(settings.context.draft_model));
    if (settings.model.lora != settings_.model.lora)
        for (auto& [path, scale] : settings.model.lora) HR_TRY(confine(path));
    if (settings_.model_root.empty()) return settings;
    if (settings.model.chat_template != settings_.model.chat_template && !settings_.guest_templates)
        return failure(
            Code::denied,
            "chat_template: a template is a program, and the service runs those of its own models only; "
            "its configuration may allow others with guest_templates");
    for (const std::string& device : settings.model.devices) {  // weights and prompts go there
        const auto& own = settings_.model.devices;
        if (remote::is_remote(device) && std::find(own.begin(), own.end(), device) == own.end())
            return failure(Code::denied, "device '{}' is none of the service's own devices", device);
    }
    return settings;
}

/// An alias's path, or the name as a path inside the model root.
Result<std::string> Service::confined_path(std::string_view name) const {
    namespace fs = std::filesystem;
    if (name.empty()) return invalid("the model's name is empty");
    if (name.find('\0') != std::string_view::npos) return invalid("the model's name has a NUL byte inside");
    if (const auto alias = settings_.model_aliases.find(std::string(name));
        alias != settings_.model_aliases.end())
        return alias->second;
    const fs::path given{std::string(name)};
    if (settings_.model_root.empty()) return given.string();
    std::error_code error;
    const fs::path root = fs::canonical(settings_.model_root, error);
    if (error) {
        HR_LOG(error, {}, "model_root is {}: {}", settings_.model_root, error.message());
        return failure(Code::not_found, "the host's model_root cannot be used: {}", error.message());
    }
    const fs::path path = fs::weakly_canonical(given.is_absolute() ? given : root / given, error);
    const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
    if (error || end != root.end())
        return failure(Code::denied, "'{}' is outside the model root, and no alias", name);
    return path.string();
}

Result<Service::GraphId> Service::load(std::string_view name, std::string_view config, bool replace) {
    HR_ASSIGN(const std::string path, confined_path(name));
    Notes notes;
    GuestNames names;
    names.add(path, std::string(name));
    HR_ASSIGN(Settings settings, load_settings(config, notes, names));
    log_notes(notes);
    Result<Runner> runner = open_runner(path, settings);
    if (!runner.ok()) return names.within(runner.error());
    return add_graph({std::move(runner).value(), std::move(settings), std::string(name), path,
                      std::move(notes), std::move(names)},
                     replace);
}

Result<Service::GraphId> Service::load_bytes(std::string_view bytes, std::string_view config, bool replace) {
    Notes notes;
    GuestNames names;
    HR_ASSIGN(Settings settings, load_settings(config, notes, names));
    if (!settings_.model_root.empty() && !settings_.guest_templates && settings.model.chat_template.empty()) {
        settings.model.chat_template = kPlainTemplate;
        notes.push_back(
            {"chat_template", "the template in a guest's model is not run: messages are written plainly"});
    }
    log_notes(notes);
    Result<Runner> runner = open_runner(bytes, settings);
    if (!runner.ok()) return names.within(runner.error());
    return add_graph(
        {std::move(runner).value(), std::move(settings), "(bytes)", "", std::move(notes), std::move(names)},
        replace);
}

Result<Service::GraphId> Service::add_graph(Graph graph, bool replace) {
    Settings& settings = graph.settings;
    note_placement(graph.runner, settings, graph.notes);
    if (graph.runner.engine) HR_TRY(adjust_to(*graph.runner.engine, settings, graph.notes));
    // The only configuration that a guest of some runtimes can give is that of its model.
    if (settings.session != settings_.session) sessions_.limit(settings.session);
    if (settings.log != settings_.log) HR_TRY(set_log(settings.log));
    if (settings.replace == "true") replace = true;
    if (settings.replace == "false") replace = false;
    Graph before;  // freed after the lock: the last request on it may still run
    const std::lock_guard lock(mutex_);
    if (replace && !graphs_.empty()) {
        auto& [id, first] = *graphs_.begin();
        before = std::exchange(first, std::move(graph));
        HR_LOG(info, {}, "graph {}: {} replaces {}", id, first.name, before.name);
        return id;
    }
    const GraphId id = next_graph_++;
    graphs_.emplace(id, std::move(graph));
    return id;
}

Status Service::unload(GraphId graph) {
    Graph gone;
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(graph);
    if (found == graphs_.end()) return failure(Code::not_found, "there is no graph {}", graph);
    gone = std::move(found->second);
    graphs_.erase(found);
    return success();
}

Result<Service::Graph> Service::graph_of(GraphId graph) {
    const std::lock_guard lock(mutex_);
    const auto found = graphs_.find(graph);
    if (found == graphs_.end())
        return failure(Code::not_found, "there is no graph {}; load one first", graph);
    return found->second;
}

/// Guests cannot close contexts: those of unloaded graphs, unless a request still runs there, are no use.
void Service::forget_orphans() {
    std::vector<std::shared_ptr<Context>> gone;
    {
        const std::lock_guard lock(mutex_);
        for (auto entry = contexts_.begin(); entry != contexts_.end();) {
            Context& context = *entry->second;
            const std::lock_guard inside(context.mutex);
            const bool is_orphan = !graphs_.contains(context.graph) && context.requests.empty();
            if (is_orphan) gone.push_back(entry->second);
            entry = is_orphan ? contexts_.erase(entry) : std::next(entry);
        }
    }
    for (const auto& context : gone) sessions_.close(context->session);
}

Result<Service::ContextId> Service::open(GraphId graph, std::optional<std::string_view> session) {
    HR_ASSIGN(const Graph exists, graph_of(graph));
    auto context = std::make_shared<Context>();
    if (session && !session->empty()) {
        HR_ASSIGN(context->session, sessions_.open(*session));
    } else {
        Result<std::shared_ptr<Session>> anonymous = sessions_.open_anonymous();
        if (!anonymous.ok()) {
            forget_orphans();
            anonymous = sessions_.open_anonymous();
        }
        HR_ASSIGN(context->session, std::move(anonymous));
    }
    context->graph = graph;
    const std::lock_guard lock(mutex_);
    context->id = next_context_++;
    contexts_[context->id] = context;
    return context->id;
}

Result<std::shared_ptr<Service::Context>> Service::find(ContextId context) {
    const std::lock_guard lock(mutex_);
    const auto found = contexts_.find(context);
    if (found == contexts_.end())
        return failure(Code::not_found, "there is no execution context {}; it was closed or never opened",
                       context);
    return found->second;
}

Status Service::close(ContextId id) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    HR_TRY(cancel(id));
    HR_TRY(end_pieces(id));
    {
        const std::lock_guard lock(mutex_);
        if (contexts_.erase(id) == 0)
            return failure(Code::not_found, "execution context {} is closed already", id);
    }
    sessions_.close(context->session);
    return success();
}

Status Service::set_input(ContextId id, uint32_t index, std::string_view bytes) {
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard lock(context->mutex);
    if (index == 0) {
        context->prompt = bytes;
        context->has_prompt = true;
        ++context->prompt_number;
    } else if (index == 1) {
        context->parameters = bytes;
    } else {
        return invalid("there is no input {}: 0 is the prompt, 1 parameters as JSON", index);
    }
    context->reply.reset();
    context->error.reset();
    context->request_id = 0;
    return success();
}

void Service::remember_failure(const Error& error) {
    const std::lock_guard lock(mutex_);
    last_failure_ = error;
}

Service::Origin Service::origin_of(ContextId id) {
    const auto context = find(id);
    if (!context.ok()) return {};
    const std::lock_guard lock(context.value()->mutex);
    return {context.value()->session->label(), context.value()->request_id};
}

Result<std::string> Service::output(ContextId id, uint32_t index) {
    if (id == 0 && index == 1) {
        const std::lock_guard lock(mutex_);
        if (last_failure_) return error_json(*last_failure_);
    }
    HR_ASSIGN(const std::shared_ptr<Context> context, find(id));
    const std::lock_guard lock(context->mutex);
    if (index == 1 && context->error) return error_json(*context->error);
    if (index == 1 && !context->piece_metadata.empty()) return context->piece_metadata;
    if (!context->reply) return failure(Code::invalid_state, "nothing was computed since the last input");
    if (index > 1) return invalid("there is no output {}: 0 is the answer, 1 its metadata as JSON", index);
    return index == 0 ? context->reply->text : context->reply->metadata;
}

Result<Service::GraphId> Service::first_graph() {
    const std::lock_guard lock(mutex_);
    if (graphs_.empty()) return failure(Code::not_found, "no model is loaded");
    return graphs_.begin()->first;
}

std::string Service::statistics() {
    sessions_.close_idle();
    std::map<GraphId, Graph> graphs;
    size_t contexts = 0;
    {
        const std::lock_guard lock(mutex_);
        graphs = graphs_;
        contexts = contexts_.size();
    }
    nlohmann::json json = {{"contexts", contexts},
                           {"sessions", {{"named", sessions_.named()}, {"anonymous", sessions_.anonymous()}}},
                           {"process", process_statistics()}};
    for (const auto& [id, graph] : graphs)
        json["graphs"].push_back(graph_statistics(id, graph.name, graph.runner));
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace headrace::llm
