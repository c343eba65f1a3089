#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "doors/serve/request/errors.h"

namespace headrace::serve {

/// Which models are in memory, who waits for which, and what is to be done next: the rules of a pool, without
/// threads, files or clocks. One caller at a time.
///
/// Models are loaded one after the other, in the order in which they were asked for. One that has no room
/// waits until others are given back: idle ones at once, the least recently used first. Where only models
/// are left that answer, one of them takes no more requests: those wait, the running ones end, and then it
/// goes. A model that answers keeps taking requests for as long as its load took: it is not loaded for one.
class ModelSchedule {
public:
    using Clock = std::chrono::steady_clock;
    using Time = Clock::time_point;
    using Instance = std::uint64_t;  ///< a model in memory; 0: none
    using Ticket = std::uint64_t;    ///< a request that asked for a model

    struct Limits {
        std::uint64_t bytes = 0;    ///< of all models together; 0: no limit
        std::size_t models = 0;     ///< that are not pinned; 0: no limit
        std::size_t waiting = 256;  ///< requests
    };
    struct Model {
        std::string id;
        std::string version;  ///< another one is loaded anew, and takes the place of the one that is there
        bool is_pinned = false;
        std::chrono::milliseconds idle_limit{0};  ///< after which it is given back; 0: none
    };

    /// What a model takes. Parts of one name are the same memory, whichever models have them.
    struct Part {
        std::string name;
        std::uint64_t bytes = 0;
    };
    using Size = std::vector<Part>;

    explicit ModelSchedule(const Limits& limits) : limits_(limits) {}

    /// Those that there are from now on. Others are given back when their requests have ended; who waits for
    /// one of these is refused.
    void configure(const std::vector<Model>& models, Time now);
    void set_version(const std::string& id, const std::string& version);
    /// From now on; idle models above them are given back.
    void set_limits(const Limits& limits) { limits_ = limits; }

    /// Throws ApiError: no such model, too many wait.
    Ticket ask(const std::string& id, Time now);
    struct Answer {
        Instance granted = 0;  ///< until `release`
        std::optional<ApiError> refused;
    };
    /// The ticket's answer, or nothing while it waits; an answered ticket is gone.
    std::optional<Answer> answer(Ticket ticket);
    /// Ends a ticket whose answer nobody waits for any more.
    void drop(Ticket ticket, Time now);
    void release(Instance instance, Time now);
    /// Gives a model back once its requests have ended. False where it is not in memory.
    bool unload(const std::string& id);
    /// Refuses all who wait.
    void refuse_all(const ApiError& error);

    struct Action {
        enum class Kind { wait, measure, load, free } kind = Kind::wait;
        std::string id;
        Instance instance = 0;           ///< to load as, or to free
        std::optional<Time> until = {};  ///< wait: when to ask again, whatever happens
    };
    /// The action that is due now. `measure`, `load` and `free` are to be answered by what follows.
    Action next(Time now);
    /// Reports about how much memory a load takes.
    void measured(const std::string& id, Size size);
    /// size: empty where it is what was measured.
    void loaded(Instance instance, Size size, Time now);
    /// Those that wait for it are refused. instance: of a load; 0: of a measurement.
    void failed(const std::string& id, Instance instance, const ApiError& error);
    void freed(Instance instance);

    enum class State { unloaded, waiting, loading, loaded, leaving };
    State state(const std::string& id) const;
    /// Why its last load failed; empty after one that did not.
    std::string failure(const std::string& id) const;
    /// The one that takes requests; 0: none.
    Instance current(const std::string& id) const;
    std::uint64_t bytes_held() const;
    std::size_t waiting() const;

private:
    enum class Phase { loading, serving, retired, freeing };
    struct Held {
        std::string id, version;
        Size size;
        Phase phase = Phase::loading;
        bool is_pinned = false;
        bool drains = false;  ///< takes no requests, as another needs its room
        std::size_t leases = 0;
        Time used, since;  ///< since: it begins to load, and then to take requests
        Clock::duration load_time{0};
    };
    struct Entry {
        Model model;
        Size size;  ///< of a load; empty: not known
        Instance current = 0, loading = 0;
        std::deque<Ticket> waiting;
        bool is_queued = false;
        bool is_renewed = false;     ///< it is queued for another version's sake
        std::string failed_version;  ///< which is not tried again while another one serves
        std::string failure;
    };

    bool takes_requests(Instance instance) const;
    bool is_outdated(const Entry& entry) const;
    void queue(Entry& entry, bool renews);
    void grant_waiting(Entry& entry, Time now);
    void refuse_waiting(Entry& entry, const ApiError& error);
    void retire(Entry& entry);
    std::optional<Action> free_something(Time now, std::optional<Time>& until);
    std::optional<Action> serve_queue(Time now, std::optional<Time>& until);
    void leave_queue(Entry& entry);
    Action begin_load(Entry& entry, Time now);
    std::optional<Action> make_room(Entry& entry, Time now, std::optional<Time>& until);
    std::optional<ApiError> never_fits(const Entry& entry) const;
    static bool is_going(const Held& held);
    /// once_others_went: that are on their way.
    bool has_room(const Entry& entry, bool once_others_went) const;
    bool is_over_limits() const;
    Instance least_recent(bool idle, const Entry& beside) const;
    void drain(Instance instance, const Entry& beside);
    void stop_draining(Time now);
    Action free(Instance instance);

    Limits limits_;
    std::map<std::string, Entry> entries_;
    std::map<Instance, Held> held_;
    std::deque<std::string> queue_;          ///< models to load
    std::string drained_for_;                ///< the model for whose sake others drain
    std::map<Ticket, std::string> tickets_;  ///< that wait, with their model
    std::map<Ticket, Answer> answers_;
    std::uint64_t next_ = 1;
};

}  // namespace headrace::serve
