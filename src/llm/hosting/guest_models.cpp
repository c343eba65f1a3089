#include "llm/hosting/guest_models.h"

#include <algorithm>

#include "llm/hosting/given_parameters.h"
#include "llm/log/log_settings.h"
#include "llm/service/model_names.h"
#include "remote/host.h"

namespace headrace::llm {
namespace {

/// For models that guests bring along: their own templates are programs.
constexpr auto kPlainTemplate =
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:";

}  // namespace

Result<ModelSlots::Id> GuestModels::load(std::string_view name, const GivenParameters& given, bool replaces) {
    HR_ASSIGN(const std::string path, model_path(name, settings_));
    HR_ASSIGN(Load load, read(given));
    load.names.add(path, std::string(name));
    Result<Share> taken = share(path, false, load);
    if (!taken.ok()) return load.names.within(taken.error());
    log_warnings(load.warnings);
    auto opened = open_model(std::string(name), path, load.settings, with_own_warnings(load.warnings));
    return add(std::move(opened), std::move(load.names), std::move(taken).value(), replaces);
}

Result<ModelSlots::Id> GuestModels::load_bytes(std::string_view bytes, const GivenParameters& given,
                                               bool replaces) {
    HR_ASSIGN(Load load, read(given));
    if (!settings_.model_root.empty() && !settings_.guest_templates &&
        load.settings.model.chat_template.empty()) {
        load.settings.model.chat_template = kPlainTemplate;
        load.warnings.push_back(
            {"chat_template", "the template in a guest's model is not run: messages are written plainly"});
    }
    HR_ASSIGN(const MemoryFile file, copy_of(bytes));
    Result<Share> taken = share(file.path(), true, load);
    if (!taken.ok()) return load.names.within(file.within(taken.error()));
    log_warnings(load.warnings);
    auto opened = open_model(file, load.settings, with_own_warnings(load.warnings));
    return add(std::move(opened), std::move(load.names), std::move(taken).value(), replaces);
}

Result<GuestModels::Load> GuestModels::read(const GivenParameters& given) const {
    Load load{.settings = settings_};
    load.names.add_own(settings_.context.draft_model);
    load.names.add_own(settings_.model.mmproj);
    for (const auto& [path, scale] : settings_.model.lora) load.names.add_own(path);
    if (given.values.empty() && !given.mistake) return load;
    HR_ASSIGN(load.settings, with_given(settings_, given, Level::model, load.warnings));
    HR_TRY(confine(load));
    return load;
}

/// A guest may have given the parameters: the files that they name are confined as the model's own.
Status GuestModels::confine(Load& load) const {
    Settings& settings = load.settings;
    // The files that the host chose for all models are its own affair.
    const auto confine_file = [&](std::string& file) -> Status {
        const std::string name = file;
        HR_ASSIGN(file, model_path(name, settings_));
        load.names.add(file, name);
        return success();
    };
    if (settings.context.draft_model != settings_.context.draft_model)
        HR_TRY(confine_file(settings.context.draft_model));
    if (settings.model.mmproj != settings_.model.mmproj) HR_TRY(confine_file(settings.model.mmproj));
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

Warnings GuestModels::with_own_warnings(const Warnings& warnings) const {
    Warnings all = warnings_;
    all.insert(all.end(), warnings.begin(), warnings.end());
    return all;
}

/// The share of a model that is loaded alike already: it takes no more memory.
GuestModels::Share GuestModels::known_share(const std::string& path, const EngineSettings& settings) const {
    for (const auto& [id, model] : slots_.all())
        if (model.share && model.share->path == path && model.share->asked == settings) return model.share;
    return nullptr;
}

/// Remembered prompts get what the budget has for them.
void GuestModels::fit_cache(const ModelShare& share, Load& load) const {
    int& mib = load.settings.cache.ram_mib;
    if (mib != settings_.cache.ram_mib && mib != share.cache_mib)
        load.warnings.push_back(
            {"ram_mib", fmt::format("remembered prompts get {} MiB in place of {}: a quarter at most of what "
                                    "the host's max_memory_bytes leaves",
                                    share.cache_mib, mib)});
    mib = share.cache_mib;
}

/// Where there is room for it; what share() takes then counts it.
Result<MemoryFile> GuestModels::copy_of(std::string_view bytes) const {
    HeldMemory held(budget_);
    HR_TRY(held.become(bytes.size(), "the model"));
    return MemoryFile::of(bytes);
}

Result<GuestModels::Share> GuestModels::share(const std::string& path, bool is_copied, Load& load) const {
    if (!budget_->is_limited()) return Share();
    Share share = is_copied ? nullptr : known_share(path, load.settings);
    if (!share) {
        HR_ASSIGN(ModelShare made, share_for_model(path, is_copied, load.settings, budget_));
        share = std::make_shared<const ModelShare>(std::move(made));
    }
    fit_cache(*share, load);
    return share;
}

Result<ModelSlots::Id> GuestModels::add(Result<LoadedModel> opened, GuestNames names, Share share,
                                        bool replaces) {
    if (!opened.ok()) return names.within(opened.error());
    opened.value().share = std::move(share);
    const Settings& settings = opened.value().settings;
    // The only configuration that a guest of some runtimes can give is that of its model.
    if (settings.session != settings_.session) sessions_.limit(settings.session);
    if (settings.log != settings_.log) HR_TRY(set_log(settings.log));
    if (settings.replace == "true") replaces = true;
    if (settings.replace == "false") replaces = false;
    const std::lock_guard lock(mutex_);  // two loads that replace the same model: the later one's names stay
    const ModelSlots::Id id = slots_.put(std::move(opened).value(), replaces);
    names_[id] = std::move(names);
    return id;
}

Status GuestModels::unload(ModelSlots::Id id) {
    if (!slots_.remove(id).ok()) return failure(Code::not_found, "there is no graph {}", id);
    const std::lock_guard lock(mutex_);
    names_.erase(id);
    return success();
}

Status GuestModels::read_file(std::string_view name,
                              const std::function<void(const std::string&)>& read) const {
    HR_ASSIGN(const std::string path, model_path(name, settings_));
    try {
        read(path);
    } catch (const Exception& e) {
        GuestNames names;
        names.add(path, std::string(name));
        return names.within({e.code(), e.what(), e.parameter()});
    }
    return success();
}

GuestLimits GuestModels::limits() const {
    return {.graphs = settings_.max_graphs,
            .contexts = settings_.max_contexts,
            .bytes = settings_.guest_bytes,
            .model_bytes = settings_.max_model_bytes,
            .graph_bytes = settings_.max_graph_bytes,
            .compute = std::chrono::milliseconds(settings_.max_compute_ms),
            .threads = settings_.context.n_threads};
}

Result<LoadedModel> GuestModels::find(ModelSlots::Id id) const {
    Result<LoadedModel> found = slots_.find(id);
    if (found.ok()) return found;
    return failure(Code::not_found, "there is no graph {}; load one first", id);
}

Error GuestModels::within(ModelSlots::Id id, Error error) const {
    GuestNames names;
    {
        const std::lock_guard lock(mutex_);
        if (const auto found = names_.find(id); found != names_.end()) names = found->second;
    }
    return names.within(std::move(error));
}

}  // namespace headrace::llm
