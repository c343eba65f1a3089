#include "doors/serve/pool/model_pool.h"

#include <fmt/format.h>

#include <utility>

#include "doors/serve/http/answer_record.h"

namespace headrace::serve {
namespace {

constexpr std::chrono::milliseconds kLookForClient(100);

ApiError stopping() { return overloaded("the server is stopping", 2); }

std::string version_of(const ModelPool::Source& source, const std::string& files) {
    return source.options + '\n' + files;
}

std::string files_of(const ModelPool::Source& source) {
    return source.file_version ? source.file_version() : std::string();
}

}  // namespace

ModelPool::ModelPool(const ModelSchedule::Limits& limits, Listener listener)
    : listener_(std::move(listener)), schedule_(limits), thread_([this] { run(); }) {}

ModelPool::~ModelPool() {
    close();
    {
        const std::lock_guard lock(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void ModelPool::configure(std::vector<Source> sources) {
    std::vector<ModelSchedule::Model> models;
    for (const Source& source : sources)
        models.push_back(
            {source.id, version_of(source, files_of(source)), source.is_pinned, source.idle_limit});
    {
        const std::lock_guard lock(mutex_);
        schedule_.configure(models, ModelSchedule::Clock::now());
        sources_.clear();
        for (Source& source : sources) sources_.emplace(source.id, std::move(source));
    }
    changed_.notify_all();
    answered_.notify_all();
}

void ModelPool::set_limits(const ModelSchedule::Limits& limits) {
    const std::lock_guard lock(mutex_);
    schedule_.set_limits(limits);
    changed_.notify_all();
}

/// A file that was put in another's place is another version of the model.
void ModelPool::look_at_files(const std::string& id) {
    Source source;
    {
        const std::lock_guard lock(mutex_);
        const auto found = sources_.find(id);
        if (found == sources_.end() || !found->second.file_version) return;
        source = found->second;
    }
    const std::string version = version_of(source, files_of(source));
    const std::lock_guard lock(mutex_);
    const auto found = sources_.find(id);
    if (found != sources_.end() && found->second.options == source.options)
        schedule_.set_version(id, version);
}

std::shared_ptr<Resident> ModelPool::acquire(const std::string& id, const Patience& patience) {
    look_at_files(id);
    std::unique_lock lock(mutex_);
    if (is_closed_) throw stopping();
    const ModelSchedule::Ticket ticket = schedule_.ask(id, ModelSchedule::Clock::now());
    changed_.notify_all();
    for (;;) {
        if (const auto answer = schedule_.answer(ticket)) {
            if (answer->refused) throw ApiError(*answer->refused);
            return lease(answer->granted);
        }
        const auto now = ModelSchedule::Clock::now();
        const bool is_late = now >= patience.until;
        if (is_late || patience.is_gone()) {
            schedule_.drop(ticket, now);
            changed_.notify_all();
            if (is_late)
                throw ApiError(504, "timeout_error",
                               fmt::format("the request's time was over while {} was not loaded yet", id));
            throw ApiError(499, "cancelled", kClientIsGone);
        }
        answered_.wait_for(lock, kLookForClient);
    }
}

/// Its end gives the model back.
std::shared_ptr<Resident> ModelPool::lease(ModelSchedule::Instance instance) {
    std::shared_ptr<Resident> resident = residents_.at(instance);
    Resident* shown = resident.get();
    return {shown, [this, instance, resident = std::move(resident)](Resident*) mutable {
                resident.reset();
                const std::lock_guard lock(mutex_);
                schedule_.release(instance, ModelSchedule::Clock::now());
                changed_.notify_all();
            }};
}

std::shared_ptr<Resident> ModelPool::peek(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = residents_.find(schedule_.current(id));
    return found == residents_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<Resident>> ModelPool::residents() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Resident>> all;
    for (const auto& [instance, resident] : residents_) all.push_back(resident);
    return all;
}

bool ModelPool::unload(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const bool is_there = schedule_.unload(id);
    changed_.notify_all();
    return is_there;
}

ModelPool::State ModelPool::state(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    return schedule_.state(id);
}

std::string ModelPool::failure(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    return schedule_.failure(id);
}

ModelPool::Counts ModelPool::counts() const {
    const std::lock_guard lock(mutex_);
    Counts counts = counts_;
    counts.bytes = schedule_.bytes_held();
    counts.waiting = schedule_.waiting();
    return counts;
}

bool ModelPool::is_loading() const {
    const std::lock_guard lock(mutex_);
    return is_loading_;
}

void ModelPool::close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    schedule_.refuse_all(stopping());
    answered_.notify_all();
    changed_.notify_all();
}

void ModelPool::run() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
        const ModelSchedule::Action action = schedule_.next(ModelSchedule::Clock::now());
        answered_.notify_all();
        if (action.kind != ModelSchedule::Action::Kind::wait)
            perform(action, lock);
        else if (action.until)
            changed_.wait_until(lock, *action.until);
        else
            changed_.wait(lock);
    }
    std::map<ModelSchedule::Instance, std::shared_ptr<Resident>> all = std::exchange(residents_, {});
    lock.unlock();
}

void ModelPool::perform(const ModelSchedule::Action& action, std::unique_lock<std::mutex>& lock) {
    if (action.kind == ModelSchedule::Action::Kind::load) return load(action, lock);
    if (action.kind == ModelSchedule::Action::Kind::free) {
        std::shared_ptr<Resident> gone = std::move(residents_.extract(action.instance).mapped());
        lock.unlock();
        gone.reset();
        tell(Event::unloaded, action.id);
        lock.lock();
        ++counts_.unloads;
        return schedule_.freed(action.instance);
    }
    const auto measure = sources_.at(action.id).measure;
    lock.unlock();
    ModelSchedule::Size size;
    std::optional<ApiError> error;
    try {
        if (measure) size = measure();
    } catch (const ApiError& thrown) {
        error = thrown;
    }
    if (error) tell(Event::failed, action.id, error->what());
    lock.lock();
    if (!error) return schedule_.measured(action.id, std::move(size));
    ++counts_.failed_loads;
    schedule_.failed(action.id, 0, *error);
}

void ModelPool::load(const ModelSchedule::Action& action, std::unique_lock<std::mutex>& lock) {
    const auto load = sources_.at(action.id).load;
    is_loading_ = true;
    lock.unlock();
    tell(Event::loading, action.id);
    std::shared_ptr<Resident> resident;
    std::optional<ApiError> error;
    const auto begin = ModelSchedule::Clock::now();
    try {
        resident = load();
    } catch (const ApiError& thrown) {
        error = thrown;
    }
    const std::chrono::duration<double> took = ModelSchedule::Clock::now() - begin;
    if (error)
        tell(Event::failed, action.id, error->what());
    else
        tell(Event::loaded, action.id, fmt::format("{:.1f} s", took.count()));
    lock.lock();
    is_loading_ = false;
    counts_.load_seconds += took.count();
    if (error) {
        ++counts_.failed_loads;
        return schedule_.failed(action.id, action.instance, *error);
    }
    ++counts_.loads;
    ModelSchedule::Size size;  // what was measured knows what models share
    if (!sources_.contains(action.id) || !sources_.at(action.id).measure)
        size = {{.name = {}, .bytes = resident->resident_bytes()}};
    residents_.emplace(action.instance, std::move(resident));
    schedule_.loaded(action.instance, std::move(size), ModelSchedule::Clock::now());
}

void ModelPool::tell(Event event, const std::string& id, const std::string& text) const {
    if (listener_) listener_(event, id, text);
}

}  // namespace headrace::serve
