#include "llm/engine/registry.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "llm/checks/model_file.h"
#include "llm/model/placement.h"

namespace headrace::llm {
namespace {

/// A file's identity: another file under the same name is another model, and one that came back from another
/// name has changed, too: what was in its place meanwhile may have been read. Empty where there is none.
std::string identity_of(const std::string& path) {
    struct stat file {};
    if (path.empty() || stat(path.c_str(), &file) != 0) return {};
    return fmt::format("{}:{}:{}:{}.{}:{}.{}", file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                       file.st_mtim.tv_nsec, file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

/// Identifies all files of weights and adapters. A missing one is an error of the load.
std::string identity_of(const std::string& path, const ModelFile& file, const ModelSettings& settings) {
    std::string all = identity_of(path);
    for (const std::string& part : file.parts) all += ' ' + identity_of(part);
    for (const auto& [adapter, scale] : settings.lora) all += ' ' + identity_of(adapter);
    all += ' ' + identity_of(settings.mmproj);
    return all;
}

struct ModelKey {
    std::string file;
    ModelSettings settings;
    /// Where layers are placed on remote hosts depends on what else those are to hold; otherwise the default.
    ContextMemory context;

    bool operator==(const ModelKey&) const = default;
};

struct EngineKey {
    std::string file;
    EngineSettings settings;

    bool operator==(const EngineKey&) const = default;
};

/// One entry a key, made anew when that was lost with a remote host; its own lock lets loads of different
/// models go on at once.
template <class Key, class T>
class Shared {
public:
    template <class Make>
    Result<std::shared_ptr<T>> get(const Key& key, Make make) {
        const std::shared_ptr<Slot> slot = slot_of(key);
        const std::lock_guard lock(slot->mutex);
        if (std::shared_ptr<T> value = slot->value.lock(); value && !value->is_lost()) return value;
        HR_ASSIGN(std::shared_ptr<T> value, make());
        const std::lock_guard counting(mutex_);  // others look at all slots
        slot->value = value;
        return value;
    }
    std::size_t living() {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count_if(
            slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->value.expired(); }));
    }

private:
    struct Slot {
        explicit Slot(Key key) : key(std::move(key)) {}
        const Key key;
        std::mutex mutex;
        std::weak_ptr<T> value;
    };

    std::shared_ptr<Slot> slot_of(const Key& key) {
        const std::lock_guard lock(mutex_);
        std::erase_if(slots_,
                      [](const auto& slot) { return slot.use_count() == 1 && slot->value.expired(); });
        const auto found =
            std::find_if(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->key == key; });
        return found != slots_.end() ? *found : slots_.emplace_back(std::make_shared<Slot>(key));
    }

    std::mutex mutex_;
    std::vector<std::shared_ptr<Slot>> slots_;  // few: one for each model that is in use
};

/// Never destroyed: models may be closed while the process exits.
struct Registry {
    Shared<ModelKey, const Model> models;
    Shared<EngineKey, Engine> engines;
    Shared<EngineKey, Embedder> embedders;
};
Registry& registry() {
    static auto* registry = new Registry;
    return *registry;
}

/// Without a head llama.cpp takes the first number of a vector for a score.
Status check_ranks(const std::string& path, const ModelFile& file, const ContextSettings& context) {
    if (file.can_rank || !(context.embeddings || file.embeddings)) return success();
    if (!pools_by(file, context.pooling, "rank", LLAMA_POOLING_TYPE_RANK)) return success();
    return unsupported(
               "{}: the model ('{}') cannot rank: it has no head for scores (cls.weight, cls.output.weight). "
               "Name one that is made for ranking, such as bge-reranker, or another pooling",
               path, file.architecture)
        .of_parameter("pooling");
}

/// As files are now. identity: of the model's own, which were `file` a moment ago.
Result<Runner> open_at_once(const std::string& path, const ModelFile& file, const std::string& identity,
                            const EngineSettings& settings) {
    const EngineKey key{identity + ' ' + identity_of(settings.context.draft_model), settings};
    ModelKey model_key{identity, settings.model, {}};
    if (names_remote_hosts(settings.model)) model_key.context = settings.context;
    HR_ASSIGN(std::shared_ptr<const Model> model, registry().models.get(model_key, [&] {
        return Model::load(path, model_key.settings, model_key.context);
    }));
    Runner runner;
    if (settings.context.embeddings || file.embeddings) {
        HR_ASSIGN(runner.embedder,
                  registry().embedders.get(key, [&] { return Embedder::start(model, key.settings); }));
    } else {
        HR_ASSIGN(runner.engine,
                  registry().engines.get(key, [&] { return Engine::start(model, key.settings); }));
    }
    return runner;
}

}  // namespace

Result<Runner> open_runner(const std::string& path, const EngineSettings& settings) {
    if (settings.context.batch_invariant)
        if (const Status loaded = require_packed_kernels(); !loaded.ok())
            return loaded.error().of_parameter("batch_invariant");
    // Another file may be put in one's place at any time. What was read of the one and of the other is thrown
    // away: keys and values on disk would bear the wrong one's name.
    constexpr int kTries = 5;
    for (int i = 0; i < kTries; ++i) {
        if (identity_of(path).empty()) return failure(Code::not_found, "{}: there is no such file", path);
        HR_ASSIGN(const ModelFile file, inspect_model_file(path, settings.model.kv_overrides));
        HR_TRY(check_ranks(path, file, settings.context));
        const std::string identity = identity_of(path, file, settings.model);
        Result<Runner> runner = open_at_once(path, file, identity, settings);
        if (identity_of(path, file, settings.model) == identity) return runner;
    }
    return failure(Code::io, "{}: it is changed again and again while it is loaded; load it when it is whole",
                   path);
}

Result<Runner> open_runner(const MemoryFile& file, const EngineSettings& settings) {
    Result<Runner> runner = open_runner(file.path(), settings);
    if (runner.ok()) return runner;
    return file.within(runner.error());
}

RegistryStatistics registry_statistics() {
    return {registry().models.living(), registry().engines.living() + registry().embedders.living()};
}

}  // namespace headrace::llm
