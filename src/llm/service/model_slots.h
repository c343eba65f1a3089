#pragma once
#include <cstdint>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/engine/registry.h"
#include "llm/service/model_memory.h"
#include "llm/settings.h"
#include "llm/warnings.h"

namespace headrace::llm {

/// A model that requests may use.
struct LoadedModel {
    Runner runner;
    Settings settings;                             ///< the defaults of its requests
    std::string name;                              ///< what whoever loaded it calls it
    std::string path;                              ///< empty: the weights were given as bytes
    Warnings warnings;                             ///< of the load, for every reply
    std::shared_ptr<const ModelShare> share = {};  ///< of a limited budget; none elsewhere

    /// Code::unsupported where it only gives vectors.
    Status check_writes_text() const;
};

/// Opens a file, or weights in memory, and fits the settings to it. warnings: so far; what this machine and
/// this kind of model do otherwise is added. Errors: those of open_runner.
Result<LoadedModel> open_model(std::string name, std::string path, Settings settings, Warnings warnings);
Result<LoadedModel> open_model(const MemoryFile& file, Settings settings, Warnings warnings);

/// The models that requests name by number. One that lost a remote host is loaded again when a request asks
/// for it. Thread-safe.
class ModelSlots {
public:
    using Id = std::uint32_t;

    /// replaces: in the place of the first model, if there is one: requests that run end on that one, later
    /// ones use the new one.
    Id put(LoadedModel model, bool replaces);
    /// An Id that no model gets.
    Id reserve();
    Status remove(Id id);

    Result<Id> first() const;
    std::map<Id, LoadedModel> all() const;
    Result<LoadedModel> find(Id id) const;
    /// The model, loaded again first if it has to be. Requests wait for one load, none beyond its own time.
    Result<LoadedModel> usable(Id id, Clock::time_point until);

private:
    Status load_again(Id id, const LoadedModel& lost);

    mutable std::mutex mutex_;
    std::map<Id, LoadedModel> models_;
    Id next_ = 0;
    std::map<Id, std::shared_future<Status>> reloads_;  // ended before the rest goes
};

}  // namespace headrace::llm
