#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::llm {

/// What every loop that serves requests counts.
struct LoopStatistics {
    std::uint64_t requests = 0, finished = 0, failed = 0, rejected = 0, steps = 0;
    std::size_t waiting = 0, running = 0;
};

/// What an engine has done and holds.
struct EngineStatistics : LoopStatistics {
    std::uint64_t cancelled = 0;
    /// prompt_tokens were read; cached_tokens of the prompts that ended were not, being remembered.
    std::uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, drafted = 0, accepted = 0;
    std::uint64_t overtaken_steps = 0, pauses = 0, shifts = 0, evictions = 0;
    std::size_t remembered_sequences = 0, remembered_tokens = 0, ram_cache_bytes = 0;
    /// The cache on disk; disk_cached_tokens came from there, and are counted in cached_tokens, too.
    std::uint64_t disk_cached_tokens = 0, disk_written_tokens = 0, disk_failures = 0;
    std::size_t disk_cache_bytes = 0;
    int context_tokens = 0, threads = 0;
    /// Times of steps that read prompts, and of those in which streams decode; a step may be both.
    double prompt_ms = 0, decode_ms = 0, step_ms_longest = 0;
    std::uint64_t stream_steps = 0;          ///< streams that had a part in a step, of all steps
    std::size_t longest_stream = 0;          ///< tokens of prompt and answer
    std::uint64_t drafts = 0;                ///< that were checked
    std::vector<std::uint64_t> accepted_at;  ///< of their tokens, by the place in the draft
};

/// What an embedder has done and holds.
struct EmbedderStatistics : LoopStatistics {
    std::uint64_t broken_off = 0, tokens = 0;
};

}  // namespace headrace::llm
