#include "doors/serve/pool/model_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace headrace::serve {
namespace {

constexpr std::uint64_t kMib = 1 << 20;

/// The memory that several models take together.
class TotalSize {
public:
    TotalSize() = default;
    explicit TotalSize(const ModelSchedule::Size& size) { add(size); }

    void add(const ModelSchedule::Size& size) {
        for (const auto& [name, bytes] : size) {
            if (name.empty())
                own_ += bytes;
            else
                shared_[name] = std::max(shared_[name], bytes);
        }
    }
    std::uint64_t bytes() const {
        std::uint64_t all = own_;
        for (const auto& [name, bytes] : shared_) all += bytes;
        return all;
    }

private:
    std::uint64_t own_ = 0;
    std::map<std::string_view, std::uint64_t> shared_;  // of names in the sizes that were added
};

std::uint64_t mib(std::uint64_t bytes) { return (bytes + kMib - 1) / kMib; }

void sooner(std::optional<ModelSchedule::Time>& until, ModelSchedule::Time time) {
    until = until ? std::min(*until, time) : time;
}

}  // namespace

void ModelSchedule::configure(const std::vector<Model>& models, Time now) {
    std::set<std::string> known;
    for (const Model& model : models) {
        known.insert(model.id);
        Entry& entry = entries_[model.id];
        if (entry.model.version != model.version) entry.size.clear();
        entry.model = model;
        if (const auto held = held_.find(entry.current); held != held_.end())
            held->second.is_pinned = model.is_pinned;
    }
    for (auto& [id, entry] : entries_) {
        if (known.contains(id)) continue;
        retire(entry);
        refuse_waiting(entry, not_found(fmt::format("there is no model '{:.100}' any more", id)));
    }
    std::erase_if(queue_, [&](const std::string& id) { return !known.contains(id); });
    std::erase_if(entries_, [&](const auto& entry) { return !known.contains(entry.first); });
    stop_draining(now);
}

void ModelSchedule::set_version(const std::string& id, const std::string& version) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.model.version == version) return;
    found->second.model.version = version;
    found->second.size.clear();
}

bool ModelSchedule::takes_requests(Instance instance) const {
    const auto found = held_.find(instance);
    return found != held_.end() && found->second.phase == Phase::serving && !found->second.drains;
}

bool ModelSchedule::is_outdated(const Entry& entry) const {
    const auto held = held_.find(entry.current);
    return held != held_.end() && held->second.version != entry.model.version &&
           entry.failed_version != entry.model.version;
}

void ModelSchedule::queue(Entry& entry, bool renews) {
    entry.is_renewed = entry.is_renewed || renews;
    if (entry.is_queued || entry.loading) return;
    entry.is_queued = true;
    queue_.push_back(entry.model.id);
}

ModelSchedule::Ticket ModelSchedule::ask(const std::string& id, Time now) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) throw not_found(fmt::format("there is no model '{:.100}'", id));
    Entry& entry = found->second;
    if (is_outdated(entry)) queue(entry, true);
    const bool is_granted = takes_requests(entry.current);
    if (!is_granted && tickets_.size() >= limits_.waiting)
        throw overloaded(
            fmt::format("{} requests wait for models, which is the most that may", tickets_.size()));
    const Ticket ticket = next_++;
    tickets_[ticket] = id;
    entry.waiting.push_back(ticket);
    if (is_granted)
        grant_waiting(entry, now);
    else
        queue(entry, false);
    return ticket;
}

void ModelSchedule::grant_waiting(Entry& entry, Time now) {
    Held& held = held_.at(entry.current);
    for (const Ticket ticket : entry.waiting) {
        answers_[ticket] = {.granted = entry.current};
        tickets_.erase(ticket);
        ++held.leases;
        held.used = now;
    }
    entry.waiting.clear();
}

void ModelSchedule::refuse_waiting(Entry& entry, const ApiError& error) {
    for (const Ticket ticket : entry.waiting) {
        answers_[ticket] = {.refused = error};
        tickets_.erase(ticket);
    }
    entry.waiting.clear();
}

void ModelSchedule::refuse_all(const ApiError& error) {
    for (auto& [id, entry] : entries_) refuse_waiting(entry, error);
}

std::optional<ModelSchedule::Answer> ModelSchedule::answer(Ticket ticket) {
    const auto found = answers_.find(ticket);
    if (found == answers_.end()) return std::nullopt;
    Answer answer = std::move(found->second);
    answers_.erase(found);
    return answer;
}

void ModelSchedule::drop(Ticket ticket, Time now) {
    if (const auto answered = answer(ticket)) {
        if (answered->granted) release(answered->granted, now);
        return;
    }
    const auto found = tickets_.find(ticket);
    if (found == tickets_.end()) return;
    std::erase(entries_.at(found->second).waiting, ticket);
    tickets_.erase(found);
}

void ModelSchedule::release(Instance instance, Time now) {
    const auto found = held_.find(instance);
    if (found == held_.end()) return;
    --found->second.leases;
    found->second.used = now;
}

void ModelSchedule::retire(Entry& entry) {
    if (const auto held = held_.find(entry.current); held != held_.end()) held->second.phase = Phase::retired;
    entry.current = 0;
}

bool ModelSchedule::unload(const std::string& id) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || !found->second.current) return false;
    retire(found->second);
    if (!found->second.waiting.empty()) queue(found->second, false);
    return true;
}

bool ModelSchedule::is_going(const Held& held) {
    return held.drains || held.phase == Phase::retired || held.phase == Phase::freeing;
}

bool ModelSchedule::has_room(const Entry& entry, bool once_others_went) const {
    TotalSize size(entry.size);
    std::size_t models = entry.model.is_pinned ? 0 : 1;
    for (const auto& [instance, held] : held_) {
        if (once_others_went && is_going(held)) continue;
        size.add(held.size);
        models += held.is_pinned ? 0 : 1;
    }
    const bool is_one_more = !entry.model.is_pinned && limits_.models > 0;
    return (limits_.bytes == 0 || size.bytes() <= limits_.bytes) &&
           (!is_one_more || models <= limits_.models);
}

std::uint64_t ModelSchedule::bytes_held() const {
    TotalSize all;
    for (const auto& [instance, held] : held_) all.add(held.size);
    return all.bytes();
}

/// A load took more than expected, or the limits were larger.
bool ModelSchedule::is_over_limits() const {
    const auto models = std::ranges::count_if(held_, [](const auto& one) { return !one.second.is_pinned; });
    return (limits_.bytes > 0 && bytes_held() > limits_.bytes) ||
           (limits_.models > 0 && static_cast<std::size_t>(models) > limits_.models);
}

/// The instance used least recently among those that may be given back, with requests or without. beside: the
/// model that needs the room.
ModelSchedule::Instance ModelSchedule::least_recent(bool idle, const Entry& beside) const {
    Instance least = 0;
    for (const auto& [instance, held] : held_) {
        if (held.phase != Phase::serving || held.is_pinned || held.drains || instance == beside.current)
            continue;
        if ((held.leases == 0) != idle) continue;
        if (least == 0 || held.used < held_.at(least).used) least = instance;
    }
    return least;
}

ModelSchedule::Action ModelSchedule::free(Instance instance) {
    Held& held = held_.at(instance);
    if (const auto entry = entries_.find(held.id); entry != entries_.end()) {
        if (entry->second.current == instance) entry->second.current = 0;
        if (!entry->second.waiting.empty()) queue(entry->second, false);
    }
    held.phase = Phase::freeing;
    return {.kind = Action::Kind::free, .id = held.id, .instance = instance};
}

void ModelSchedule::stop_draining(Time now) {
    drained_for_.clear();
    for (auto& [instance, held] : held_) {
        if (!held.drains) continue;
        held.drains = false;
        const auto entry = entries_.find(held.id);
        if (entry != entries_.end() && entry->second.current == instance && held.phase == Phase::serving)
            grant_waiting(entry->second, now);
    }
}

ModelSchedule::Action ModelSchedule::next(Time now) {
    std::optional<Time> until;
    if (auto action = serve_queue(now, until)) return *action;
    if (auto action = free_something(now, until)) return *action;
    return {.until = until};
}

std::optional<ModelSchedule::Action> ModelSchedule::free_something(Time now, std::optional<Time>& until) {
    for (auto& [instance, held] : held_) {
        if (held.leases > 0) continue;
        if (held.phase == Phase::retired) return free(instance);
        if (held.phase != Phase::serving || held.is_pinned) continue;
        const auto limit = entries_.at(held.id).model.idle_limit;
        if (limit.count() == 0) continue;
        if (now - held.used >= limit) return free(instance);
        sooner(until, held.used + limit);
    }
    if (!is_over_limits()) return std::nullopt;
    const Instance idle = least_recent(true, Entry{});
    return idle ? std::optional(free(idle)) : std::nullopt;
}

std::optional<ApiError> ModelSchedule::never_fits(const Entry& entry) const {
    TotalSize pinned;
    for (const auto& [instance, held] : held_)
        if (held.is_pinned && held.phase == Phase::serving && held.id != entry.model.id)
            pinned.add(held.size);
    const std::uint64_t always = pinned.bytes();
    pinned.add(entry.size);
    if (limits_.bytes == 0 || pinned.bytes() <= limits_.bytes) return std::nullopt;
    const std::string beside =
        always > 0 ? fmt::format(", of which models that always stay have {}", mib(always)) : std::string();
    return ApiError(
        500, "server_error",
        fmt::format("{} needs {} MiB, and all models together may have {}{}: raise "
                    "--models-memory-mib, or give the model a smaller --ctx-size",
                    entry.model.id, mib(TotalSize(entry.size).bytes()), limits_.bytes / kMib, beside));
}

std::optional<ModelSchedule::Action> ModelSchedule::serve_queue(Time now, std::optional<Time>& until) {
    while (!queue_.empty()) {
        Entry& entry = entries_.at(queue_.front());
        const bool is_wanted = !entry.waiting.empty() && !takes_requests(entry.current);
        if (!is_wanted && !(entry.is_renewed && is_outdated(entry))) {
            leave_queue(entry);
            if (drained_for_ == entry.model.id) stop_draining(now);
            continue;
        }
        if (std::ranges::any_of(held_, [](const auto& one) { return one.second.phase == Phase::loading; }))
            return std::nullopt;
        if (entry.size.empty()) return Action{.kind = Action::Kind::measure, .id = entry.model.id};
        if (const auto error = never_fits(entry)) {
            failed(entry.model.id, 0, *error);
            continue;
        }
        return has_room(entry, false) ? begin_load(entry, now) : make_room(entry, now, until);
    }
    if (!drained_for_.empty()) stop_draining(now);
    return std::nullopt;
}

void ModelSchedule::leave_queue(Entry& entry) {
    std::erase(queue_, entry.model.id);
    entry.is_queued = entry.is_renewed = false;
}

ModelSchedule::Action ModelSchedule::begin_load(Entry& entry, Time now) {
    const Instance instance = next_++;
    held_[instance] = {.id = entry.model.id,
                       .version = entry.model.version,
                       .size = entry.size,
                       .is_pinned = entry.model.is_pinned,
                       .used = now,
                       .since = now};
    entry.loading = instance;
    leave_queue(entry);
    stop_draining(now);
    return {.kind = Action::Kind::load, .id = entry.model.id, .instance = instance};
}

void ModelSchedule::drain(Instance instance, const Entry& beside) {
    held_.at(instance).drains = true;
    drained_for_ = beside.model.id;
}

/// Frees one, or lets as many drain as are needed.
std::optional<ModelSchedule::Action> ModelSchedule::make_room(Entry& entry, Time now,
                                                              std::optional<Time>& until) {
    if (drained_for_ != entry.model.id) stop_draining(now);
    for (const auto& [instance, held] : held_)
        if (is_going(held) && held.leases == 0 && held.phase != Phase::freeing) return free(instance);
    if (has_room(entry, true)) return std::nullopt;  // soon
    // The version that it replaces goes first: another model would have to be loaded again.
    if (takes_requests(entry.current)) {
        drain(entry.current, entry);
        if (held_.at(entry.current).leases == 0) return free(entry.current);
    }
    while (!has_room(entry, true)) {
        if (const Instance idle = least_recent(true, entry)) return free(idle);
        const Instance busy = least_recent(false, entry);
        if (!busy) return std::nullopt;
        const Held& held = held_.at(busy);
        if (const Time end = held.since + held.load_time; now < end) {
            sooner(until, end);
            return std::nullopt;
        }
        drain(busy, entry);
    }
    return std::nullopt;
}

void ModelSchedule::measured(const std::string& id, Size size) {
    if (size.empty()) size.emplace_back();  // it is known
    if (const auto found = entries_.find(id); found != entries_.end()) found->second.size = std::move(size);
}

void ModelSchedule::loaded(Instance instance, Size size, Time now) {
    Held& held = held_.at(instance);
    if (!size.empty()) held.size = std::move(size);
    held.load_time = now - held.since;
    held.since = held.used = now;
    held.phase = Phase::serving;
    const auto found = entries_.find(held.id);
    if (found == entries_.end() || found->second.loading != instance) {
        held.phase = Phase::retired;  // it was taken out of the configuration meanwhile
        return;
    }
    Entry& entry = found->second;
    entry.loading = 0;
    entry.size = held.size;
    entry.failure.clear();
    entry.failed_version.clear();
    held.is_pinned = entry.model.is_pinned;
    retire(entry);
    entry.current = instance;
    grant_waiting(entry, now);
}

void ModelSchedule::failed(const std::string& id, Instance instance, const ApiError& error) {
    const auto tried = held_.extract(instance);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.loading != instance) return;
    Entry& entry = found->second;
    entry.loading = 0;
    leave_queue(entry);
    entry.failure = error.what();
    // Its files may be others since the load began.
    entry.failed_version = tried ? tried.mapped().version : entry.model.version;
    if (const auto held = held_.find(entry.current); held != held_.end()) held->second.drains = false;
    if (takes_requests(entry.current))
        grant_waiting(entry, held_.at(entry.current).used);
    else
        refuse_waiting(entry, error);
}

void ModelSchedule::freed(Instance instance) { held_.erase(instance); }

ModelSchedule::State ModelSchedule::state(const std::string& id) const {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return State::unloaded;
    const Entry& entry = found->second;
    if (takes_requests(entry.current)) return State::loaded;
    if (entry.loading) return State::loading;
    if (entry.current) return State::leaving;
    return entry.waiting.empty() ? State::unloaded : State::waiting;
}

std::string ModelSchedule::failure(const std::string& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? std::string() : found->second.failure;
}

ModelSchedule::Instance ModelSchedule::current(const std::string& id) const {
    const auto found = entries_.find(id);
    return found == entries_.end() ? 0 : found->second.current;
}

std::size_t ModelSchedule::waiting() const { return tickets_.size(); }

}  // namespace headrace::serve
