#include "llm/engine/admission.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/machine_memory.h"

namespace headrace::llm {
namespace {

constexpr auto kEvictionInterval = std::chrono::milliseconds(100);
constexpr auto kUrgentTime = std::chrono::seconds(10);

/// Fails a stream that nobody waits for any longer.
void end_if_over(Stream& stream, Clock::time_point now) {
    const RequestSettings& settings = stream.settings();
    const auto age =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - stream.generation->arrival()).count();
    if (stream.generation->is_cancelled())
        stream.fail(failure(Code::cancelled, "cancelled by the caller"));
    else if (settings.timeout_ms >= 0 && age >= settings.timeout_ms)
        stream.fail(failure(Code::timed_out, "not done within timeout_ms {}", settings.timeout_ms));
    else if (!stream.began && settings.queue_timeout_ms >= 0 && age >= settings.queue_timeout_ms)
        stream.fail(
            failure(Code::timed_out, "not begun within queue_timeout_ms {}", settings.queue_timeout_ms));
}

}  // namespace

Admission::Admission(Sequences& sequences, const QueueSettings& queue, const CacheSettings& cache,
                     std::size_t most_running, EngineStatistics& counters)
    : sequences_(sequences),
      settings_(queue),
      cache_(cache),
      most_running_(most_running),
      counters_(counters),
      queue_(std::chrono::milliseconds(queue.aging_ms)),
      most_active_(most_running) {}

Status Admission::admit(std::unique_ptr<Stream> stream) {
    std::size_t waiting = waiting_;
    do {
        if (const Status room = check_waiting(waiting, settings_.max_waiting); !room.ok()) {
            ++rejected_;
            return room;
        }
    } while (!waiting_.compare_exchange_weak(waiting, waiting + 1));
    const std::lock_guard lock(mutex_);
    most_urgent_ = std::max<int>(most_urgent_, static_cast<int>(stream->settings().priority));
    arrived_.push_back(std::move(stream));
    return success();
}

void Admission::receive(Clock::time_point now) {
    std::vector<std::unique_ptr<Stream>> arrived;
    {
        const std::lock_guard lock(mutex_);
        arrived.swap(arrived_);
        most_urgent_ = -1;
    }
    const int before = queue_.top();
    for (std::unique_ptr<Stream>& stream : arrived) {
        const std::uint64_t id = stream->generation->id();
        const Priority priority = stream->settings().priority;
        if (before >= 0 && static_cast<int>(priority) > before) {
            urgent_priority_ = static_cast<int>(priority);
            urgent_until_ = now + kUrgentTime;
        }
        queue_.add(id, priority, stream->generation->request().owner, now);
        ++counters_.requests;
        HR_LOG(debug, stream->log_context(), "queued: {} prompt tokens", stream->prompt_size);
        streams_[id] = std::move(stream);
    }
}

bool Admission::is_overtaken() const { return most_urgent_ >= 0 && most_urgent_ > queue_.top(); }

bool Admission::expects_urgent(Clock::time_point now) const {
    return queue_.top() < urgent_priority_ && now < urgent_until_;
}

std::vector<Stream*> Admission::choose_active(Clock::time_point now) {
    const std::vector<std::uint64_t> order = queue_.serving_order();
    std::vector<Stream*> active;
    bool others_wait = false;  // for a step with other adapters, which comes only when these have ended
    for (std::uint64_t id : order) {
        if (active.size() == most_active_) break;
        Stream& stream = *streams_.at(id);
        if (!active.empty() && active.front()->variant != stream.variant) {
            others_wait = true;
            continue;
        }
        if (others_wait && !stream.began) continue;
        if (!stream.sequence && !acquire(stream, order)) break;
        if (!stream.began) {
            stream.began = now;
            stream.outcome.cached_tokens = static_cast<int>(stream.decoded);
            queue_.begin(id);
            --waiting_;
        }
        active.push_back(&stream);
    }
    for (const auto& [id, stream] : streams_) {
        const bool runs = std::find(active.begin(), active.end(), stream.get()) != active.end();
        if (stream->running && !runs) ++stream->outcome.pauses;
        stream->running = runs;
    }
    return active;
}

/// A sequence for a stream: a new or remembered one, or that of a stream that has to wait anyway.
bool Admission::acquire(Stream& stream, const std::vector<std::uint64_t>& order) {
    const bool reads_all = stream.wants_prompt_probabilities();
    stream.shares = remembers(stream) && !reads_all;
    for (;;) {
        if (const auto place =
                sequences_.acquire(stream.tokens, stream.shares || (stream.began && !reads_all),
                                   stream.variant, stream.shares && !stream.has_images())) {
            stream.sequence = place->id;
            stream.is_fetched = false;
            stream.decoded = static_cast<std::size_t>(place->tokens);
            return true;
        }
        Stream* paused = nullptr;
        for (const auto& [id, other] : streams_)
            if (other->sequence && std::find(order.begin(), order.end(), id) == order.end())
                paused = other.get();
        if (!paused) return false;
        preempt(*paused, true);
    }
}

bool Admission::remembers(const Stream& stream) const {
    return stream.settings().cache_prompt && cache_.enable_prompt_cache;
}

/// Takes a stream's sequence; it reads its tokens again later. keep: they are remembered meanwhile.
void Admission::preempt(Stream& stream, bool keep) {
    sequences_.release(*stream.sequence, keep);
    stream.sequence.reset();
    stream.decoded = 0;
}

void Admission::account(const std::vector<BatchPart>& parts, Clock::time_point now) {
    std::vector<std::uint64_t> ran;
    for (const BatchPart& part : parts) {
        ran.push_back(part.stream->generation->id());
        queue_.account(ran.back(), part.count);
    }
    queue_.served(ran, now);
}

void Admission::make_room() {
    ++counters_.evictions;
    if (sequences_.evict_one()) return;
    Stream* youngest = nullptr;
    std::size_t holders = 0;
    for (const auto& [id, stream] : streams_) {
        if (!stream->sequence) continue;
        if (!stream->running) return preempt(*stream, false);
        ++holders;
        if (!youngest || *stream->began > *youngest->began) youngest = stream.get();
    }
    if (holders == 0) return;
    if (holders == 1)
        return youngest->end(StopReason::context_full, "the context has no room for another token");
    preempt(*youngest, false);
    ++youngest->outcome.pauses;
    most_active_ = holders - 1;  // until a stream has finished
}

void Admission::evict_expired(Clock::time_point now) {
    if (now - evicted_ < kEvictionInterval) return;
    evicted_ = now;
    if (cache_.retention_ms > 0)
        sequences_.evict_older_than(now - std::chrono::milliseconds(cache_.retention_ms));
    if (sequences_.ram_bytes() + sequences_.idle_count() == 0) return;
    if (memory_share_in_use() > cache_.pressure_threshold) {
        sequences_.evict_idle();
        ++counters_.evictions;
        HR_LOG(warn, {}, "memory is short: remembered prompts are forgotten");
    }
}

std::vector<std::unique_ptr<Stream>> Admission::take_ended(Clock::time_point now) {
    std::vector<std::unique_ptr<Stream>> ended;
    for (auto entry = streams_.begin(); entry != streams_.end();) {
        Stream& stream = *entry->second;
        if (!stream.has_ended()) end_if_over(stream, now);
        if (!stream.has_ended()) {
            ++entry;
            continue;
        }
        leave(stream);
        ended.push_back(std::move(entry->second));
        entry = streams_.erase(entry);
    }
    return ended;
}

void Admission::leave(Stream& stream) {
    if (stream.sequence) {
        // A step that failed may have left more in memory than the sequence's tokens.
        if (stream.outcome.failed()) sequences_.truncate(*stream.sequence, sequences_.size(*stream.sequence));
        sequences_.release(*stream.sequence, remembers(stream));
    }
    queue_.remove(stream.generation->id());
    if (!stream.began) --waiting_;
    most_active_ = most_running_;  // there is room again
}

}  // namespace headrace::llm
