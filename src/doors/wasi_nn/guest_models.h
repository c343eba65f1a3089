#pragma once
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "doors/wasi_nn/guest_names.h"
#include "llm/service/model_slots.h"
#include "llm/service/sessions.h"

namespace headrace::wasi_nn {

using GraphId = llm::ModelSlots::Id;

/// The models of a backend, loaded as its configuration lets guests do it. Thread-safe.
class GuestModels {
public:
    /// warnings: of the settings, for every reply. sessions: those that a load's configuration may limit.
    GuestModels(llm::Settings settings, llm::Notes warnings, llm::Sessions& sessions)
        : settings_(std::move(settings)), warnings_(std::move(warnings)), sessions_(sessions) {}

    /// config: JSON of the model's parameters, or empty. replaces: whether a load takes the place of the
    /// first graph when the configuration says nothing else; one that fails changes nothing.
    Result<GraphId> load(std::string_view name, std::string_view config, bool replaces);
    Result<GraphId> load_bytes(std::string_view bytes, std::string_view config, bool replaces);
    Status unload(GraphId graph);
    /// Code::not_found where there is none.
    Result<llm::LoadedModel> find(GraphId graph) const;

    const llm::Settings& settings() const { return settings_; }
    llm::ModelSlots& slots() { return slots_; }
    /// An error of a request to that graph in the guest's words.
    Error within(GraphId graph, Error error) const;

private:
    struct Load {
        llm::Settings settings;
        llm::Notes warnings;
        GuestNames names;
    };
    Result<Load> read(std::string_view config) const;
    Status confine(Load& load) const;
    llm::Notes with_own_warnings(const llm::Notes& warnings) const;
    Result<GraphId> add(Result<llm::LoadedModel> opened, GuestNames names, bool replaces);

    const llm::Settings settings_;
    const llm::Notes warnings_;
    llm::Sessions& sessions_;
    llm::ModelSlots slots_;
    mutable std::mutex mutex_;
    std::map<GraphId, GuestNames> names_;
};

}  // namespace headrace::wasi_nn
