#include "doors/wasi_nn/guest_models.h"

#include <algorithm>

#include "doors/wasi_nn/configuration.h"
#include "llm/log/log_settings.h"
#include "llm/service/model_names.h"
#include "remote/host.h"

namespace headrace::wasi_nn {
namespace {

/// For models that guests bring along: their own templates are programs.
constexpr auto kPlainTemplate =
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:";

}  // namespace

Result<GraphId> GuestModels::load(std::string_view name, std::string_view config, bool replaces) {
    HR_ASSIGN(const std::string path, llm::model_path(name, settings_));
    HR_ASSIGN(Load load, read(config));
    load.names.add(path, std::string(name));
    llm::log_notes(load.warnings);
    return add(
        llm::open_model(std::string(name), path, std::move(load.settings), with_own_warnings(load.warnings)),
        std::move(load.names), replaces);
}

Result<GraphId> GuestModels::load_bytes(std::string_view bytes, std::string_view config, bool replaces) {
    HR_ASSIGN(Load load, read(config));
    if (!settings_.model_root.empty() && !settings_.guest_templates &&
        load.settings.model.chat_template.empty()) {
        load.settings.model.chat_template = kPlainTemplate;
        load.warnings.push_back(
            {"chat_template", "the template in a guest's model is not run: messages are written plainly"});
    }
    llm::log_notes(load.warnings);
    return add(llm::open_model_bytes(bytes, std::move(load.settings), with_own_warnings(load.warnings)),
               std::move(load.names), replaces);
}

Result<GuestModels::Load> GuestModels::read(std::string_view config) const {
    Load load{.settings = settings_};
    load.names.add_own(settings_.context.draft_model);
    for (const auto& [path, scale] : settings_.model.lora) load.names.add_own(path);
    if (config.empty()) return load;
    HR_ASSIGN(load.settings, with_configuration(settings_, config, llm::Level::model, load.warnings));
    HR_TRY(confine(load));
    return load;
}

/// A guest may have written the configuration: the files that it names are confined as the model's own.
Status GuestModels::confine(Load& load) const {
    llm::Settings& settings = load.settings;
    // The files that the host chose for all models are its own affair.
    const auto confine_file = [&](std::string& file) -> Status {
        const std::string name = file;
        HR_ASSIGN(file, llm::model_path(name, settings_));
        load.names.add(file, name);
        return success();
    };
    if (settings.context.draft_model != settings_.context.draft_model)
        HR_TRY(confine_file(settings.context.draft_model));
    if (settings.model.lora != settings_.model.lora)
        for (auto& [path, scale] : settings.model.lora) HR_TRY(confine_file(path));
    if (settings_.model_root.empty()) return success();
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
    return success();
}

llm::Notes GuestModels::with_own_warnings(const llm::Notes& warnings) const {
    llm::Notes all = warnings_;
    all.insert(all.end(), warnings.begin(), warnings.end());
    return all;
}

Result<GraphId> GuestModels::add(Result<llm::LoadedModel> opened, GuestNames names, bool replaces) {
    if (!opened.ok()) return names.within(opened.error());
    const llm::Settings& settings = opened.value().settings;
    // The only configuration that a guest of some runtimes can give is that of its model.
    if (settings.session != settings_.session) sessions_.limit(settings.session);
    if (settings.log != settings_.log) HR_TRY(llm::set_log(settings.log));
    if (settings.replace == "true") replaces = true;
    if (settings.replace == "false") replaces = false;
    const std::lock_guard lock(mutex_);  // two loads that replace the same graph: the later one's names stay
    const GraphId graph = slots_.put(std::move(opened).value(), replaces);
    names_[graph] = std::move(names);
    return graph;
}

Status GuestModels::unload(GraphId graph) {
    if (!slots_.remove(graph).ok()) return failure(Code::not_found, "there is no graph {}", graph);
    const std::lock_guard lock(mutex_);
    names_.erase(graph);
    return success();
}

Result<llm::LoadedModel> GuestModels::find(GraphId graph) const {
    Result<llm::LoadedModel> found = slots_.find(graph);
    if (found.ok()) return found;
    return failure(Code::not_found, "there is no graph {}; load one first", graph);
}

Error GuestModels::within(GraphId graph, Error error) const {
    GuestNames names;
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = names_.find(graph); found != names_.end()) names = found->second;
    }
    return names.within(std::move(error));
}

}  // namespace headrace::wasi_nn
