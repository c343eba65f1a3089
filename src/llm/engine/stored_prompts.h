#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "llm/blocks/task_thread.h"
#include "llm/engine/block_store.h"
#include "llm/engine/sequences.h"
#include "llm/engine/statistics.h"
#include "llm/engine/stream.h"

namespace headrace::llm {

/// An engine's prompts on disk: writes the blocks of what its sequences have read, and brings in those that a
/// prompt begins with. Files are read and written by threads of their own; the loop, whose this is, only
/// copies blocks out of and into the context's memory, a few milliseconds each. What fails costs time:
/// nothing reaches a request.
class StoredPrompts {
public:
    /// wake: ends the loop's rest. Throws std::system_error where the system has no thread.
    StoredPrompts(BlockStore store, Sequences& sequences, EngineStatistics& counters,
                  std::function<void()> wake);
    ~StoredPrompts();
    StoredPrompts(const StoredPrompts&) = delete;
    StoredPrompts& operator=(const StoredPrompts&) = delete;

    /// Takes those streams out whose prompts are being fetched, or wait for what another one fetches.
    void fetch(std::vector<Stream*>& active, Clock::time_point now);
    /// Hands one block over to be written. False when there is none, or the disk has enough to do.
    bool store_next(Clock::time_point now);
    /// What is not written yet, as far as the time reaches.
    void store_all(std::chrono::milliseconds most);
    /// Removes the blocks of a text.
    void forget(const Tokens& tokens);

private:
    struct Delivery;
    struct Results;
    struct Fetch {
        std::uint64_t stream;
        Sequences::Id sequence;
        std::size_t next;  ///< block to come
        Clock::time_point deadline;
        std::shared_ptr<Delivery> delivery;
    };
    bool waits_for_fetch(const Stream& stream, const std::vector<Stream*>& active) const;
    bool begin(Stream& stream, Clock::time_point now);
    bool go_on(Fetch& fetch, Stream& stream, Clock::time_point now);
    bool is_worth_reading();
    double compute_ms() const;
    BlockOrigin origin_of(std::uint64_t variant);
    void take_results(Clock::time_point now);
    void note_problem(const Error& error, Clock::time_point now);
    void write(const Sequences::Block& block);

    const BlockStore store_;
    Sequences& sequences_;
    EngineStatistics& counters_;
    const std::function<void()> wake_;
    const std::shared_ptr<Results> results_;
    std::vector<Fetch> fetches_;
    std::set<ContentHash> written_;           // of blocks that are on disk for all we know
    std::set<std::uint64_t> variants_ = {0};  // that were seen
    bool writes_ = true, reads_ = true;       // or what is wrong does not pass
    bool has_warned_of_writing_ = false, has_warned_of_reading_ = false;
    int left_out_ = 0;  // prompts in a row that were not looked for, as computing is faster
    Clock::time_point retry_{};
    TaskThread reader_, writer_;
};

}  // namespace headrace::llm
