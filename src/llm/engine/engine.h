#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "llm/engine/deep_thread.h"
#include "llm/engine/draft_model.h"
#include "llm/engine/generation.h"
#include "llm/engine/pacing.h"
#include "llm/engine/queue.h"
#include "llm/engine/sequences.h"
#include "llm/engine/stream.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// What an engine has done and holds.
struct EngineStatistics {
    uint64_t requests = 0, finished = 0, failed = 0, cancelled = 0, rejected = 0;
    /// prompt_tokens were read; cached_tokens of the prompts that ended were not, being remembered.
    uint64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, drafted = 0, accepted = 0;
    uint64_t steps = 0, overtaken_steps = 0, pauses = 0, shifts = 0, evictions = 0;
    size_t waiting = 0, running = 0, remembered_sequences = 0, remembered_tokens = 0, ram_cache_bytes = 0;
    int context_tokens = 0, threads = 0;
    double prompt_ms = 0, step_ms_longest = 0;
};

/// Runs one model: one loop makes each batch from the streams that decode and pieces of waiting prompts.
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
    int context_size() const { return context_size_; }
    EngineStatistics statistics() const;
    /// Forgets the prompts that are only remembered.
    void clear_cache();

private:
    struct Free {
        void operator()(llama_context* context) const { llama_free(context); }
    };
    /// A stream's part of a batch.
    struct Work {
        Stream* stream;
        Tokens draft;
        int first, count;  // entries of the batch
        bool output;       // its end is sampled
    };
    struct StepTime {
        double wall_ms, running_ms;
    };
    /// What submitters and the loop share.
    struct Inbox {
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<std::unique_ptr<Stream>> arrived;
        bool woken = false;
        std::atomic<int> most_urgent = -1;  // priority among those that arrived
    };

    Engine(std::shared_ptr<const Model> model, const EngineSettings& settings);
    Status make_context();
    void attach_threads(int threads);
    Status check(const GenerationRequest& request) const;
    Status take_place();

    void loop();
    void receive();
    void drop_ended();
    bool fail_if_lost();
    void keep_house();
    void step();
    std::vector<Stream*> choose_active();
    bool give_place(Stream& stream, const std::vector<uint64_t>& order);
    void build_batch(const std::vector<Stream*>& active, std::vector<Work>& work);
    Tokens draft_for(Stream& stream, int most);
    void add_decoding(Stream& stream, int spare, std::vector<Work>& work);
    void add_prompt(Stream& stream, int most, std::vector<Work>& work);
    bool waits_for_another(const Stream& stream, const std::vector<Stream*>& before) const;
    void add_entries(Stream& stream, const llama_token* tokens, size_t count, bool all_outputs,
                     bool last_output);
    bool fits_context(Stream& stream);
    /// Forgets remembered prompts until that many tokens fit; returns how many do.
    int make_free(int tokens);
    int run_batch(const std::vector<Work>& work);
    void after_failure(int status, const std::vector<Work>& work);
    void make_room();
    void take_results(std::vector<Work>& work);
    void use_adapters(const Stream& stream);
    void finish(Stream& stream);
    void publish();
    bool step_is_overtaken() const;
    bool reads_guardedly() const;
    static bool abort_step(void* self);

    std::shared_ptr<const Model> model_;
    EngineSettings settings_;
    std::unique_ptr<llama_context, Free> context_;
    void* threadpool_ = nullptr;
    int context_size_ = 0, decode_threads_ = 1, most_threads_ = 1;

    std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> clear_cache_ = false;
    std::atomic<uint64_t> next_id_ = 1;
    std::atomic<size_t> waiting_ = 0;

    // The loop's own.
    std::map<uint64_t, std::unique_ptr<Stream>> streams_;
    std::unique_ptr<Sequences> sequences_;
    std::unique_ptr<DraftModel> draft_model_;
    Queue queue_;
    PromptPacing prompt_pacing_;
    std::unique_ptr<ThreadPacing> thread_pacing_;
    llama_batch batch_{};
    StepTime step_time_{};
    std::vector<const Generation*> in_batch_;
    int step_priority_ = 0;  // what its streams have been raised to, or were given
    bool step_only_reads_ = false;
    int guard_priority_ = 0;
    Clock::time_point guarded_until_{}, house_kept_{};
    bool cells_move_ = false;  // in the next step, before its batch: breaking that off would spoil the memory
    std::optional<uint64_t> variant_;  // what the context's adapters are set for; none: not set yet
    size_t most_active_ = 0;           // fewer than wanted while the context is short of room

    mutable std::mutex statistics_mutex_;
    EngineStatistics statistics_, counters_;
    DeepThread thread_;
};

}  // namespace headrace::llm
