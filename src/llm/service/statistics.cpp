#include "llm/service/statistics.h"

#include <unistd.h>

#include <fstream>

#include "base/machine_memory.h"

namespace headrace::llm {
namespace {

std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

void add(LanguageModelStatistics& all, const EngineStatistics& engine) {
    all.submitted = engine.requests;
    all.finished = engine.finished;
    all.failed = engine.failed;
    all.cancelled = engine.cancelled;
    all.rejected = engine.rejected;
    all.waiting = engine.waiting;
    all.running = engine.running;
    all.prompt_tokens = engine.prompt_tokens;
    all.cached_tokens = engine.cached_tokens;
    all.generated_tokens = engine.generated_tokens;
    all.drafted_tokens = engine.drafted;
    all.accepted_tokens = engine.accepted;
    all.drafts = engine.drafts;
    all.accepted_at = engine.accepted_at;
    all.prompt_ms = engine.prompt_ms;
    all.decode_ms = engine.decode_ms;
    all.stream_steps = engine.stream_steps;
    all.longest_request = engine.longest_stream;
    all.steps = engine.steps;
    all.overtaken_steps = engine.overtaken_steps;
    all.pauses = engine.pauses;
    all.context_shifts = engine.shifts;
    all.longest_step_ms = engine.step_ms_longest;
    all.threads = engine.threads;
    all.remembered_sequences = engine.remembered_sequences;
    all.remembered_tokens = engine.remembered_tokens;
    all.ram_cache_bytes = engine.ram_cache_bytes;
    all.disk_cached_tokens = engine.disk_cached_tokens;
    all.disk_written_tokens = engine.disk_written_tokens;
    all.disk_failures = engine.disk_failures;
    all.disk_cache_bytes = engine.disk_cache_bytes;
    all.evictions = engine.evictions;
    all.context_tokens = static_cast<std::size_t>(engine.context_tokens);
}

void add(LanguageModelStatistics& all, const EmbedderStatistics& embedder) {
    all.submitted = embedder.requests;
    all.finished = embedder.finished;
    all.failed = embedder.failed;
    all.rejected = embedder.rejected;
    all.waiting = embedder.waiting;
    all.running = embedder.running;
    all.prompt_tokens = embedder.tokens;
    all.steps = embedder.steps;
    all.broken_off_steps = embedder.broken_off;
}

}  // namespace

LanguageModelStatistics statistics_of(const LoadedModel& model) {
    LanguageModelStatistics all{.name = model.name,
                                .description = model.runner.model().description(),
                                .weight_bytes = llama_model_size(model.runner.model().get())};
    if (model.runner.engine)
        add(all, model.runner.engine->statistics());
    else
        add(all, model.runner.embedder->statistics());
    return all;
}

void add_process(LanguageModelStatistics& statistics, const Sessions& sessions) {
    statistics.named_sessions = sessions.named();
    statistics.anonymous_sessions = static_cast<std::size_t>(sessions.anonymous());
    const RegistryStatistics registry = registry_statistics();
    statistics.process_models = registry.models;
    statistics.process_engines = registry.engines;
    statistics.process_resident_bytes = resident_bytes();
    statistics.memory_share_in_use = memory_share_in_use();
}

}  // namespace headrace::llm
