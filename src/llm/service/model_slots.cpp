#include "llm/service/model_slots.h"

#include <utility>

#include "base/log.h"
#include "llm/service/load_warnings.h"

namespace headrace::llm {
namespace {

bool is_ready(const std::shared_future<Status>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

Result<LoadedModel> fitted(LoadedModel model) {
    warn_of_placement(model.runner, model.settings, model.warnings);
    if (model.runner.engine) HR_TRY(adjust_to(*model.runner.engine, model.settings, model.warnings));
    return model;
}

}  // namespace

Status LoadedModel::check_writes_text() const {
    if (!runner.engine) return unsupported("{} gives embeddings, and no text", name);
    return success();
}

Result<LoadedModel> open_model(std::string name, std::string path, Settings settings, Warnings warnings) {
    HR_ASSIGN(Runner runner, open_runner(path, settings));
    return fitted(
        {std::move(runner), std::move(settings), std::move(name), std::move(path), std::move(warnings)});
}

Result<LoadedModel> open_model(const MemoryFile& file, Settings settings, Warnings warnings) {
    HR_ASSIGN(Runner runner, open_runner(file, settings));
    return fitted({std::move(runner), std::move(settings), "(bytes)", "", std::move(warnings)});
}

ModelSlots::Id ModelSlots::put(LoadedModel model, bool replaces) {
    LoadedModel before;  // freed after the lock: the last request on it may still run
    const std::lock_guard lock(mutex_);
    if (replaces && !models_.empty()) {
        auto& [id, first] = *models_.begin();
        before = std::exchange(first, std::move(model));
        HR_LOG(info, {}, "{} replaces {}", first.name, before.name);
        return id;
    }
    const Id id = next_++;
    models_.emplace(id, std::move(model));
    return id;
}

ModelSlots::Id ModelSlots::reserve() {
    const std::lock_guard lock(mutex_);
    return next_++;
}

Status ModelSlots::remove(Id id) {
    LoadedModel gone;
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(id);
    if (found == models_.end()) return failure(Code::not_found, "there is no model {}", id);
    gone = std::move(found->second);
    models_.erase(found);
    return success();
}

Result<ModelSlots::Id> ModelSlots::first() const {
    const std::lock_guard lock(mutex_);
    if (models_.empty()) return failure(Code::not_found, "no model is loaded");
    return models_.begin()->first;
}

std::map<ModelSlots::Id, LoadedModel> ModelSlots::all() const {
    const std::lock_guard lock(mutex_);
    return models_;
}

Result<LoadedModel> ModelSlots::find(Id id) const {
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(id);
    if (found == models_.end()) return failure(Code::not_found, "there is no model {}; load one first", id);
    return found->second;
}

Result<LoadedModel> ModelSlots::usable(Id id, Clock::time_point until) {
    HR_ASSIGN(LoadedModel model, find(id));
    const Status lost = model.runner.model().check_hosts();
    if (lost.ok()) return model;
    if (model.path.empty()) return lost.error().within("load the model again, its bytes are gone");
    std::shared_future<Status> reload;
    {
        const std::lock_guard lock(mutex_);
        std::shared_future<Status>& running = reloads_[id];
        if (!running.valid() || is_ready(running))
            running = std::async(std::launch::async, [this, id, model] { return load_again(id, model); });
        reload = running;
    }
    if (until == Clock::time_point::max())
        reload.wait();
    else if (reload.wait_until(until) != std::future_status::ready)
        return failure(Code::timed_out, "{}; the model is still being loaded again", lost.error().message);
    if (const Status& status = reload.get(); !status.ok())
        return failure(Code::backend_failure, "{}; it cannot be loaded again: {}", lost.error().message,
                       status.error().message);
    return find(id);
}

Status ModelSlots::load_again(Id id, const LoadedModel& lost) {
    HR_LOG(warn, {}, "{} is loaded again: {}", lost.name, lost.runner.model().check_hosts().error().message);
    HR_ASSIGN(Runner runner, open_runner(lost.path, lost.settings));
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(id);
    if (found == models_.end()) return failure(Code::not_found, "{} was unloaded meanwhile", lost.name);
    Runner& current = found->second.runner;  // another model may have taken its place
    if (&current.model() == &lost.runner.model()) current = std::move(runner);
    return success();
}

}  // namespace headrace::llm
