// The engine's loop: who takes part in a step, and what a step does with the answers.
#include <algorithm>
#include <exception>

#include "base/machine_memory.h"
#include "llm/engine/engine.h"
#include "llm/log/log.h"
#include "llm/model/context_params.h"

namespace headrace::llm {
namespace {

constexpr auto idle_wait = std::chrono::milliseconds(250);
constexpr auto house_interval = std::chrono::milliseconds(100);
constexpr auto guard_time = std::chrono::seconds(10);

LogContext context_of(const Stream& stream) {
    return {stream.generation->request().session, stream.generation->id()};
}

}  // namespace

void Engine::loop() {
    while (!stopping_) {
        {
            std::unique_lock lock(inbox_->mutex);
            if (streams_.empty())
                inbox_->changed.wait_for(lock, idle_wait,
                                         [&] { return inbox_->woken || !inbox_->arrived.empty(); });
            inbox_->woken = false;
        }
        receive();
        fail_if_lost();
        drop_ended();
        if (clear_cache_.exchange(false)) sequences_->evict_idle();
        keep_house();
        if (!streams_.empty()) {
            try {
                step();
            } catch (const std::exception& e) {
                // llama.cpp throws where memory ends: the streams of this step are lost, the engine is not.
                for (auto& [id, stream] : streams_)
                    if (stream->running) stream->fail(Code::backend_failure, e.what());
            }
        }
        publish();
    }
    receive();
    for (auto& [id, stream] : streams_) stream->fail(Code::cancelled, "the model is being unloaded");
    drop_ended();
}

void Engine::receive() {
    std::vector<std::unique_ptr<Stream>> arrived;
    {
        const std::lock_guard lock(inbox_->mutex);
        arrived.swap(inbox_->arrived);
        inbox_->most_urgent = -1;
    }
    const int before = queue_.top();
    for (auto& stream : arrived) {
        const uint64_t id = stream->generation->id();
        const GenerationRequest& request = stream->generation->request();
        const auto priority = static_cast<int>(request.settings.priority);
        if (before >= 0 && priority > before) {
            guard_priority_ = priority;
            guarded_until_ = Clock::now() + guard_time;
        }
        queue_.add(id, request.settings.priority, request.owner, Clock::now());
        ++counters_.requests;
        HR_LOG(debug, context_of(*stream), "queued: {} prompt tokens", stream->prompt_size);
        streams_[id] = std::move(stream);
    }
}

/// After a remote host was lost no request has a result: whoever asks again gets a model that is loaded anew.
bool Engine::fail_if_lost() {
    const Status present = model_->check_hosts();
    if (present.ok()) return false;
    for (auto& [id, stream] : streams_)
        if (stream->outcome.reason == StopReason::none)
            stream->fail(present.error().code, present.error().message);
    return true;
}

/// Delivers what ended, was cancelled, or ran out of time.
void Engine::drop_ended() {
    const Clock::time_point now = Clock::now();
    for (auto entry = streams_.begin(); entry != streams_.end();) {
        Stream& stream = *entry->second;
        const RequestSettings& settings = stream.settings();
        const auto age =
            std::chrono::duration_cast<std::chrono::milliseconds>(now - stream.generation->arrival());
        if (stream.outcome.reason == StopReason::none) {
            if (stream.generation->is_cancelled())
                stream.fail(Code::cancelled, "cancelled by the caller");
            else if (settings.timeout_ms >= 0 && age.count() >= settings.timeout_ms)
                stream.fail(Code::timed_out,
                            fmt::format("not done within timeout_ms {}", settings.timeout_ms));
            else if (!stream.began && settings.queue_timeout_ms >= 0 &&
                     age.count() >= settings.queue_timeout_ms)
                stream.fail(Code::timed_out,
                            fmt::format("not begun within queue_timeout_ms {}", settings.queue_timeout_ms));
        }
        if (stream.outcome.reason == StopReason::none) {
            ++entry;
            continue;
        }
        finish(stream);
        entry = streams_.erase(entry);
    }
}

void Engine::finish(Stream& stream) {
    const Outcome& outcome = stream.outcome;
    HR_LOG(debug, context_of(stream), "{}: {} prompt tokens ({} remembered), {} generated",
           to_string(outcome.reason), outcome.prompt_tokens, outcome.cached_tokens, outcome.tokens.size());
    ++(outcome.reason == StopReason::cancelled ? counters_.cancelled
       : outcome.failed()                      ? counters_.failed
                                               : counters_.finished);
    counters_.cached_tokens += static_cast<uint64_t>(outcome.cached_tokens);
    counters_.drafted += static_cast<uint64_t>(outcome.drafted);
    counters_.accepted += static_cast<uint64_t>(outcome.accepted);
    counters_.pauses += static_cast<uint64_t>(outcome.pauses);
    counters_.shifts += static_cast<uint64_t>(outcome.shifts);
    // A step that failed may have left more in memory than the sequence's tokens.
    if (stream.sequence && outcome.failed())
        sequences_->truncate(*stream.sequence, sequences_->size(*stream.sequence));
    if (stream.sequence)
        sequences_->release(*stream.sequence,
                            stream.settings().cache_prompt && settings_.cache.enable_prompt_cache);
    if (draft_model_) draft_model_->forget(stream.generation->id());
    queue_.remove(stream.generation->id());
    if (!stream.began) --waiting_;
    most_active_ = static_cast<size_t>(settings_.context.n_parallel);  // there is room again
    publish();  // whoever waits for the outcome finds it counted
    stream.deliver(Clock::now());
}

/// Also while requests run, when memory is scarcest; but not in every step, as it asks the system.
void Engine::keep_house() {
    const Clock::time_point now = Clock::now();
    if (now - house_kept_ < house_interval) return;
    house_kept_ = now;
    if (settings_.cache.retention_ms > 0)
        sequences_->evict_older_than(now - std::chrono::milliseconds(settings_.cache.retention_ms));
    if (sequences_->ram_bytes() + sequences_->idle_count() == 0) return;
    if (memory_share_in_use() > settings_.cache.pressure_threshold) {
        sequences_->evict_idle();
        ++counters_.evictions;
        HR_LOG(warn, {}, "memory is short: remembered prompts are forgotten");
    }
}

void Engine::publish() {
    counters_.running =
        static_cast<size_t>(std::count_if(streams_.begin(), streams_.end(), [](const auto& entry) {
            return entry.second->began.has_value() && entry.second->outcome.reason == StopReason::none;
        }));
    counters_.remembered_sequences = sequences_->idle_count();
    counters_.remembered_tokens = sequences_->remembered_tokens();
    counters_.ram_cache_bytes = sequences_->ram_bytes();
    counters_.threads = thread_pacing_->threads();
    const std::lock_guard lock(statistics_mutex_);
    const uint64_t rejected = statistics_.rejected;
    statistics_ = counters_;
    statistics_.rejected = rejected;
}

void Engine::step() {
    const std::vector<Stream*> active = choose_active();
    std::vector<Work> work;
    build_batch(active, work);
    if (work.empty()) return;
    const int status = run_batch(work);
    if (fail_if_lost()) return drop_ended();
    const double ms = step_time_.wall_ms;
    std::vector<uint64_t> ran;
    for (const Work& part : work) {
        ran.push_back(part.stream->generation->id());
        queue_.account(ran.back(), part.count);
    }
    queue_.served(ran, Clock::now());
    if (status != 0) return after_failure(status, work);
    int decoding = 0, prompt = 0;
    for (const Work& part : work) (part.stream->is_decoding() ? decoding : prompt) += part.count;
    prompt_pacing_.observe(decoding, prompt, ms);
    thread_pacing_->observe(ms, step_time_.running_ms);
    ++counters_.steps;
    counters_.prompt_tokens += static_cast<uint64_t>(prompt);
    if (prompt) counters_.prompt_ms += ms;
    counters_.step_ms_longest = std::max(counters_.step_ms_longest, ms);
    take_results(work);
    drop_ended();
}

/// The streams of the highest priority, as many as may run at once, each with a sequence.
std::vector<Stream*> Engine::choose_active() {
    const std::vector<uint64_t> order = queue_.serving_order();
    std::vector<Stream*> active;
    bool others_wait = false;  // for a step with other adapters, which comes only when these have ended
    for (uint64_t id : order) {
        if (active.size() == most_active_) break;
        Stream& stream = *streams_.at(id);
        if (!active.empty() && active.front()->variant != stream.variant) {
            others_wait = true;
            continue;
        }
        if (others_wait && !stream.began) continue;
        if (!stream.sequence && !give_place(stream, order)) break;
        if (!stream.began) {
            stream.began = Clock::now();
            stream.outcome.cached_tokens = static_cast<int>(stream.decoded);
            queue_.begin(id);
            --waiting_;
        }
        active.push_back(&stream);
    }
    for (auto& [id, stream] : streams_) {
        const bool runs = std::find(active.begin(), active.end(), stream.get()) != active.end();
        if (stream->running && !runs) ++stream->outcome.pauses;
        stream->running = runs;
    }
    return active;
}

/// A sequence for a stream: a new or remembered one, or that of a stream that has to wait anyway.
bool Engine::give_place(Stream& stream, const std::vector<uint64_t>& order) {
    stream.shares = stream.settings().cache_prompt && settings_.cache.enable_prompt_cache;
    for (;;) {
        if (const auto place =
                sequences_->acquire(stream.tokens, stream.shares || stream.began, stream.variant)) {
            stream.sequence = place->id;
            stream.decoded = static_cast<size_t>(place->tokens);
            return true;
        }
        Stream* paused = nullptr;
        for (auto& [id, other] : streams_)
            if (other->sequence && std::find(order.begin(), order.end(), id) == order.end())
                paused = other.get();
        if (!paused) return false;
        sequences_->release(*paused->sequence, true);
        paused->sequence.reset();
        paused->decoded = 0;
    }
}

void Engine::take_results(std::vector<Work>& work) {
    const Clock::time_point now = Clock::now();
    for (Work& part : work) {
        Stream& stream = *part.stream;
        const size_t known = stream.tokens.size();
        const size_t read = static_cast<size_t>(part.count) - part.draft.size();
        sequences_->append(*stream.sequence, stream.tokens.data() + stream.decoded, read);
        stream.decoded += read;
        if (!part.output) continue;
        if (stream.settings().n_predict == 0) {
            stream.end(StopReason::token_limit);
            continue;
        }
        std::vector<int> indices;
        for (size_t i = 0; i <= part.draft.size(); ++i)
            indices.push_back(part.first + static_cast<int>(read - 1 + i));
        Result<std::vector<Sampler::Choice>> chosen =
            stream.sampler.sample(context_.get(), indices, part.draft);
        if (!chosen.ok()) {
            stream.fail(chosen.error().code, chosen.error().message);
            continue;
        }
        for (const Sampler::Choice& choice : chosen.value()) {
            ++counters_.generated_tokens;
            if (stream.take(choice, *model_, now)) break;
        }
        if (part.draft.empty()) continue;
        // The last token chosen was not in the batch; of the draft stays what was chosen before it.
        const size_t accepted = stream.tokens.size() - known - 1;
        sequences_->append(*stream.sequence, stream.tokens.data() + stream.decoded, accepted);
        stream.decoded += accepted;
        sequences_->truncate(*stream.sequence, stream.decoded);
        stream.outcome.drafted += static_cast<int>(part.draft.size());
        stream.outcome.accepted += static_cast<int>(accepted);
        stream.drafts.judge(static_cast<int>(part.draft.size()), static_cast<int>(accepted));
    }
}

}  // namespace headrace::llm
