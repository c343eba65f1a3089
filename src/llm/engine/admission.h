#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "llm/engine/queue.h"
#include "llm/engine/sequences.h"
#include "llm/engine/statistics.h"
#include "llm/engine/stream.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Decides who gets a place in the context: holds the streams of an engine from their arrival to their end,
/// and says which of them run in a step and who gives way when there is no room.
class Admission {
public:
    /// most_running: streams at once. Evictions are counted in `counters`.
    Admission(Sequences& sequences, const QueueSettings& queue, const CacheSettings& cache,
              std::size_t most_running, EngineStatistics& counters);

    // From any thread.

    /// Code::busy when too many wait.
    Status admit(std::unique_ptr<Stream> stream);
    std::size_t waiting() const { return waiting_; }
    std::size_t rejected() const { return rejected_; }

    // The loop's own.

    /// Takes in what was admitted since the last call.
    void receive(Clock::time_point now);
    /// Whether a stream arrived that is more urgent than all that were received.
    bool is_overtaken() const;
    /// Whether more urgent streams come now and then: prompts are read in short steps then, even when nobody
    /// decodes.
    bool expects_urgent(Clock::time_point now) const;
    /// The streams of the highest priority, as many as may run at once, each with a sequence.
    std::vector<Stream*> choose_active(Clock::time_point now);
    /// Records what the streams of a step got.
    void account(const std::vector<BatchPart>& parts, Clock::time_point now);
    /// No cells are left for a batch: remembered prompts go first, then what waits, then the stream that
    /// began last.
    void make_room();
    /// Forgets prompts that were remembered for long enough; all of them when the machine's memory is short.
    /// Does nothing when it did so just before, as it asks the system.
    void evict_expired(Clock::time_point now);
    /// Fails streams that were cancelled or ran out of time, and hands over all that have ended.
    std::vector<std::unique_ptr<Stream>> take_ended(Clock::time_point now);

    /// By their ids.
    const std::map<std::uint64_t, std::unique_ptr<Stream>>& streams() const { return streams_; }

private:
    bool acquire(Stream& stream, const std::vector<std::uint64_t>& order);
    void preempt(Stream& stream, bool keep);
    void leave(Stream& stream);
    bool remembers(const Stream& stream) const;

    Sequences& sequences_;
    const QueueSettings settings_;
    const CacheSettings cache_;
    const std::size_t most_running_;
    EngineStatistics& counters_;

    std::mutex mutex_;
    std::vector<std::unique_ptr<Stream>> arrived_;  // with mutex_ held
    std::atomic<int> most_urgent_ = -1;             // priority among those
    std::atomic<std::size_t> waiting_ = 0, rejected_ = 0;

    std::map<std::uint64_t, std::unique_ptr<Stream>> streams_;
    Queue queue_;
    std::size_t most_active_;  // fewer than most_running_ while the context is short of room
    int urgent_priority_ = 0;
    Clock::time_point urgent_until_{}, evicted_{};
};

}  // namespace headrace::llm
