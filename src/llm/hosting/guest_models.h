#pragma once
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "headrace/hosted_models.h"
#include "llm/hosting/path_redaction.h"
#include "llm/service/model_slots.h"
#include "llm/service/sessions.h"

namespace headrace::llm {

/// The models of a host, loaded as its settings let guests do it. Thread-safe.
class GuestModels {
public:
    /// warnings: of the settings, for every reply. sessions: those that a load's configuration may limit.
    /// budget: of all that they take.
    GuestModels(Settings settings, Warnings warnings, Sessions& sessions,
                std::shared_ptr<MemoryBudget> budget)
        : settings_(std::move(settings)),
          warnings_(std::move(warnings)),
          sessions_(sessions),
          budget_(std::move(budget)) {}

    /// replaces: whether a load takes the place of the first model when the parameters say nothing else; one
    /// that fails changes nothing.
    Result<ModelSlots::Id> load(std::string_view name, const GivenParameters& given, bool replaces);
    Result<ModelSlots::Id> load_bytes(std::string_view bytes, const GivenParameters& given, bool replaces);
    Status unload(ModelSlots::Id id);
    /// Calls `read` with the path of a guest's name; its exceptions get the guest's words.
    Status read_file(std::string_view name, const std::function<void(const std::string&)>& read) const;
    GuestLimits limits() const;
    /// Code::not_found where there is none.
    Result<LoadedModel> find(ModelSlots::Id id) const;

    ModelSlots& slots() { return slots_; }
    /// An error of a request to that model in the guest's words.
    Error within(ModelSlots::Id id, Error error) const;

private:
    struct Load {
        Settings settings;
        Warnings warnings;
        GuestNames names;
    };
    Result<Load> read(const GivenParameters& given) const;
    Status confine(Load& load) const;
    using Share = std::shared_ptr<const ModelShare>;
    Result<MemoryFile> copy_of(std::string_view bytes) const;
    Result<Share> share(const std::string& path, bool is_copied, Load& load) const;
    Share known_share(const std::string& path, const EngineSettings& settings) const;
    void fit_cache(const ModelShare& share, Load& load) const;
    Warnings with_own_warnings(const Warnings& warnings) const;
    Result<ModelSlots::Id> add(Result<LoadedModel> opened, GuestNames names, Share share, bool replaces);

    const Settings settings_;
    const Warnings warnings_;
    Sessions& sessions_;
    const std::shared_ptr<MemoryBudget> budget_;
    ModelSlots slots_;
    mutable std::mutex mutex_;
    std::map<ModelSlots::Id, GuestNames> names_;
};

}  // namespace headrace::llm
