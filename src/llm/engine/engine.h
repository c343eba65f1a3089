#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "headrace/language_model.h"
#include "llm/engine/admission.h"
#include "llm/engine/batch_builder.h"
#include "llm/engine/compute_context.h"
#include "llm/engine/generation.h"
#include "llm/engine/image_reader.h"
#include "llm/engine/loop_thread.h"
#include "llm/engine/sequences.h"
#include "llm/engine/statistics.h"
#include "llm/engine/stored_prompts.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Runs one model for many requests at once: in each pass of its thread, Admission says which streams run,
/// and BatchBuilder runs their tokens. Thread-safe.
class Engine {
public:
    /// Errors: not enough memory for the context, settings that the model cannot do.
    static Result<std::shared_ptr<Engine>> start(std::shared_ptr<const Model> model,
                                                 const EngineSettings& settings);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Errors: an empty prompt, one longer than the context, a grammar that is wrong; Code::busy when too
    /// many wait.
    Result<std::shared_ptr<Generation>> submit(GenerationRequest request);

    const Model& model() const { return *model_; }
    /// Every request fails, as a remote host was lost.
    bool is_lost() const { return model_->is_lost(); }
    const std::shared_ptr<const Model>& shared_model() const { return model_; }
    const EngineSettings& settings() const { return settings_; }
    /// Tokens of one request, its answer included.
    int context_size() const { return context_size_; }
    /// Tokens of all requests together.
    int context_tokens() const { return static_cast<int>(llama_n_ctx(context_->get())); }
    /// Bytes of its keys and values; 0 where that is not known.
    std::uint64_t context_bytes() const { return context_bytes_; }
    EngineStatistics statistics() const;
    /// Forgets the prompts that are only remembered.
    void clear_cache();

    /// Writes what the context has read of a text that begins with these tokens. Errors: nothing of it is
    /// remembered; those of write_prompt_file.
    Result<SavedPrompt> save_prompt(const Tokens& tokens, const std::string& path);
    /// Remembers what such a file has, as if it had just been read. Errors: those of read_prompt_file; Code::
    /// unsupported where the cache has no RAM for it.
    Result<SavedPrompt> restore_prompt(const std::string& path);
    /// Forgets what is remembered of texts that begin with these tokens, unless a request uses it.
    std::int64_t forget_prompt(const Tokens& tokens);

private:
    Engine(std::shared_ptr<const Model> model, const EngineSettings& settings);
    Status make_parts();
    Status make_context(bool stores_blocks);
    Status make_image_reader();
    void make_stored_prompts(std::optional<BlockStore> store);
    Status check(const GenerationRequest& request) const;
    Status check_images(const GenerationRequest& request) const;

    std::chrono::milliseconds pass();
    void run_tasks();
    bool step();
    void end_failed_step(int status);
    bool fail_if_lost();
    void deliver_ended();
    void count(const Outcome& outcome);
    void publish_statistics();
    /// While a step is computed, which may take a while.
    void publish_running();
    std::uint64_t state_owner() const;
    std::future<void> post(std::function<void()> work);
    bool is_step_overtaken() const;
    bool is_step_unwanted() const;

    const std::shared_ptr<const Model> model_;
    const EngineSettings settings_;
    int context_size_ = 0;
    std::uint64_t context_bytes_ = 0;
    EngineStatistics counters_;  // the loop's own, as what follows but for Admission's entrance
    std::unique_ptr<ComputeContext> context_;
    std::unique_ptr<Sequences> sequences_;
    std::unique_ptr<Admission> admission_;
    std::unique_ptr<ImageReader> images_;  // null where the model reads texts alone
    std::unique_ptr<BatchBuilder> batch_;
    std::unique_ptr<StoredPrompts> stored_;  // null where there is no cache on disk

    std::mutex tasks_mutex_;
    std::vector<std::packaged_task<void()>> tasks_;  // of other threads, for the loop
    std::atomic<std::uint64_t> next_id_ = 1;
    mutable std::mutex statistics_mutex_;
    EngineStatistics statistics_;  // a copy of the counters, for callers
    LoopThread thread_;
};

}  // namespace headrace::llm
