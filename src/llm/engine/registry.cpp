#include "llm/engine/registry.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "llm/checks/model_file.h"
#include "llm/model/placement.h"

namespace headrace::llm {
namespace {

template <class T>
std::string text_of(const std::vector<T>& values) {
    std::string text;
    for (const auto& value : values) text += fmt::format("{},", value);
    return text;
}

/// A file's identity: another file under the same name is another model.
Result<std::string> identity_of(const std::string& path) {
    struct stat file {};
    if (stat(path.c_str(), &file) != 0) return failure(Code::not_found, "{}: there is no such file", path);
    return fmt::format("{}:{}:{}:{}.{}", file.st_dev, file.st_ino, file.st_size, file.st_mtim.tv_sec,
                       file.st_mtim.tv_nsec);
}

std::string model_key(const ModelSettings& m) {
    std::string lora;
    for (const auto& [path, scale] : m.lora) lora += fmt::format("{}*{};", path, scale);
    return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", m.n_gpu_layers, text_of(m.devices),
                       m.host_timeout_ms, m.split_mode, m.main_gpu, text_of(m.tensor_split), m.load_mode,
                       m.check_tensors, m.repack, m.fit_margin_mib, lora, text_of(m.kv_overrides),
                       m.chat_template, m.jinja);
}

/// Where layers are placed depends on what else the hosts are to hold.
std::string context_key(const Settings& s) {
    const ContextSettings& c = s.context;
    if (!names_remote_hosts(s.model)) return "";
    return fmt::format("|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", c.n_ctx, c.n_batch, c.n_ubatch, c.n_parallel,
                       c.max_sequences, c.type_k, c.type_v, c.flash_attn, c.swa_full, c.offload_kqv,
                       c.embeddings);
}

std::string engine_key(const Settings& s) {
    const ContextSettings& c = s.context;
    return fmt::format(
        "{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{"
        "}",
        c.n_ctx, c.n_batch, c.n_ubatch, c.n_parallel, c.max_sequences, c.type_k, c.type_v, c.flash_attn,
        c.n_threads, c.n_threads_batch, c.adapt_threads, c.context_shift, c.rope_scaling, c.rope_freq_base,
        c.rope_freq_scale, c.yarn_ext_factor, c.yarn_attn_factor, c.yarn_beta_fast, c.yarn_beta_slow,
        c.yarn_orig_ctx, c.swa_full, c.offload_kqv, c.pooling, c.attention, c.embeddings, c.draft_model,
        c.draft_gpu_layers, s.queue.max_waiting, s.queue.aging_ms, s.queue.step_target_ms,
        s.cache.enable_prompt_cache, s.cache.retention_ms, s.cache.ram_mib, s.cache.pressure_threshold);
}

/// One entry a key, made anew when that was lost with a remote host; its own lock lets loads of different
/// models go on at once.
template <class T>
class Shared {
public:
    template <class Make>
    Result<std::shared_ptr<T>> get(const std::string& key, Make make) {
        std::shared_ptr<Slot> slot;
        {
            const std::lock_guard lock(mutex_);
            std::erase_if(
                slots_, [](const auto& s) { return s.second.use_count() == 1 && s.second->value.expired(); });
            std::shared_ptr<Slot>& found = slots_[key];
            if (!found) found = std::make_shared<Slot>();
            slot = found;
        }
        const std::lock_guard lock(slot->mutex);
        if (std::shared_ptr<T> value = slot->value.lock(); value && !value->is_lost()) return value;
        HR_ASSIGN(std::shared_ptr<T> value, make());
        const std::lock_guard counting(mutex_);  // others look at all slots
        slot->value = value;
        return value;
    }
    size_t living() {
        const std::lock_guard lock(mutex_);
        size_t count = 0;
        for (const auto& [key, slot] : slots_) count += !slot->value.expired();
        return count;
    }

private:
    struct Slot {
        std::mutex mutex;
        std::weak_ptr<T> value;
    };
    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Slot>> slots_;
};

/// Never destroyed: models may be closed while the process exits.
struct Registry {
    Shared<const Model> models;
    Shared<Engine> engines;
    Shared<Embedder> embedders;
};
Registry& registry() {
    static auto* registry = new Registry;
    return *registry;
}

}  // namespace

Result<Runner> open_runner(const std::string& path, const Settings& settings) {
    HR_ASSIGN(const std::string identity, identity_of(path));
    HR_ASSIGN(const ModelFile file, inspect_model_file(path, settings.model.kv_overrides));
    const std::string key = identity + "|" + model_key(settings.model) + context_key(settings);
    HR_ASSIGN(std::shared_ptr<const Model> model, registry().models.get(key, [&] {
        return Model::load(path, settings.model, settings.context);
    }));
    Runner runner;
    const std::string runner_key = key + "|" + engine_key(settings);
    if (settings.context.embeddings || file.embeddings) {
        HR_ASSIGN(runner.embedder,
                  registry().embedders.get(runner_key, [&] { return Embedder::start(model, settings); }));
    } else {
        HR_ASSIGN(runner.engine,
                  registry().engines.get(runner_key, [&] { return Engine::start(model, settings); }));
    }
    return runner;
}

Result<Runner> open_runner(std::string_view bytes, const Settings& settings) {
    const int file = memfd_create("headrace-model", MFD_CLOEXEC);
    if (file < 0) return failure(Code::io, "no memory file for a model: {}", std::strerror(errno));
    for (size_t done = 0; done < bytes.size();) {
        const ssize_t written = write(file, bytes.data() + done, bytes.size() - done);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) {
            const int error = errno;
            close(file);
            return failure(Code::out_of_memory, "{} bytes of a model cannot be copied: {}", bytes.size(),
                           std::strerror(error));
        }
        done += static_cast<size_t>(written);
    }
    const std::string path = fmt::format("/proc/self/fd/{}", file);
    Result<Runner> runner = open_runner(path, settings);
    close(file);  // what llama.cpp has mapped stays
    if (runner.ok()) return runner;
    Error error = runner.error();  // whoever gave bytes knows of no file
    for (size_t at = error.message.find(path); at != std::string::npos; at = error.message.find(path))
        error.message.replace(at, path.size(), "the model in memory");
    return error;
}

RegistryStatistics registry_statistics() {
    return {registry().models.living(), registry().engines.living() + registry().embedders.living()};
}

}  // namespace headrace::llm
