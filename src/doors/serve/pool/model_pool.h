#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "doors/serve/pool/model_schedule.h"

namespace headrace::serve {

/// A model in memory.
class Resident {
public:
    virtual ~Resident() = default;
    /// That it takes, about, where nobody measured it.
    virtual std::uint64_t resident_bytes() const = 0;
};

/// Models that are loaded when somebody asks for one, and given back by ModelSchedule's rules. Thread-safe.
class ModelPool {
public:
    using State = ModelSchedule::State;
    struct Source {
        std::string id;
        bool is_pinned = false;
        std::chrono::milliseconds idle_limit{0};
        std::string options;                                ///< others make it another version of the model
        std::function<std::string()> file_version = {};     ///< of its files as they are now
        std::function<ModelSchedule::Size()> measure = {};  ///< what a load takes, about; throws ApiError
        std::function<std::shared_ptr<Resident>()> load = {};  ///< throws ApiError
    };
    /// What ends a wait.
    struct Patience {
        std::function<bool()> is_gone = [] { return false; };
        ModelSchedule::Time until = ModelSchedule::Time::max();
    };
    struct Counts {
        std::uint64_t loads = 0, failed_loads = 0, unloads = 0;
        double load_seconds = 0;
        std::uint64_t bytes = 0;
        std::size_t waiting = 0;
    };
    enum class Event { loading, loaded, failed, unloaded };
    /// Hears what becomes of models; called by the pool's thread.
    using Listener = std::function<void(Event, const std::string& id, const std::string& text)>;

    explicit ModelPool(const ModelSchedule::Limits& limits, Listener listener = {});
    ~ModelPool();
    ModelPool(const ModelPool&) = delete;
    ModelPool& operator=(const ModelPool&) = delete;

    /// Those that there are from now on; requests to others end as they are.
    void configure(std::vector<Source> sources);
    /// From now on; idle models above them are given back.
    void set_limits(const ModelSchedule::Limits& limits);
    /// Waits until the model is there. It stays at least as long as the result is held. Throws ApiError: no
    /// such model, its load failed, 504 when time is over, 499 when the client is gone, 503 after `close`.
    std::shared_ptr<Resident> acquire(const std::string& id, const Patience& patience);
    std::shared_ptr<Resident> acquire(const std::string& id) { return acquire(id, Patience()); }
    /// The one that is there, without keeping it and without counting as a use of it; null: none.
    std::shared_ptr<Resident> peek(const std::string& id) const;
    /// All that are in memory, also those that answer their last requests.
    std::vector<std::shared_ptr<Resident>> residents() const;
    /// Gives it back once its requests have ended. False where it is not there.
    bool unload(const std::string& id);
    State state(const std::string& id) const;
    std::string failure(const std::string& id) const;
    Counts counts() const;
    bool is_loading() const;
    /// Requests that wait are refused, as are later ones.
    void close();

private:
    void run();
    void perform(const ModelSchedule::Action& action, std::unique_lock<std::mutex>& lock);
    void load(const ModelSchedule::Action& action, std::unique_lock<std::mutex>& lock);
    void tell(Event event, const std::string& id, const std::string& text = {}) const;
    std::shared_ptr<Resident> lease(ModelSchedule::Instance instance);
    void look_at_files(const std::string& id);

    const Listener listener_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;   // for the thread
    std::condition_variable answered_;  // for those that wait
    ModelSchedule schedule_;
    std::map<std::string, Source> sources_;
    std::map<ModelSchedule::Instance, std::shared_ptr<Resident>> residents_;
    Counts counts_;
    bool is_closed_ = false, ends_ = false, is_loading_ = false;
    std::thread thread_;
};

}  // namespace headrace::serve
