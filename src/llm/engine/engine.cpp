#include "llm/engine/engine.h"

#include <llama.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/content_hash.h"
#include "base/log.h"
#include "llm/engine/draft_model.h"
#include "llm/model/context_memory.h"
#include "llm/model/context_params.h"

namespace headrace::llm {
namespace {

constexpr auto kIdlePass = std::chrono::milliseconds(250);  // remembered prompts expire meanwhile
constexpr auto kDiskPass = std::chrono::milliseconds(20);   // while all that runs waits for the disk
constexpr auto kLastWrites = std::chrono::seconds(3);

}  // namespace

Engine::Engine(std::shared_ptr<const Model> model, const EngineSettings& settings)
    : model_(std::move(model)), settings_(settings) {}

Result<std::shared_ptr<Engine>> Engine::start(std::shared_ptr<const Model> model,
                                              const EngineSettings& settings) {
    std::shared_ptr<Engine> engine(new Engine(std::move(model), settings));
    HR_TRY(engine->make_parts());
    HR_TRY(engine->thread_.start([self = engine.get()] { return self->pass(); }));
    return engine;
}

Status Engine::make_parts() {
    std::optional<BlockStore> store = open_block_store(*model_, settings_);
    HR_TRY(make_context(store.has_value()));
    if (!llama_get_memory(context_->get()))
        return unsupported(
            "{}: the model has no memory of tokens, so it cannot generate; use it for embeddings",
            model_->path());
    context_size_ = static_cast<int>(llama_n_ctx_seq(context_->get()));
    if (const int most = settings_.context.n_ctx_per_request; most != 0)
        context_size_ = std::min(
            context_size_, most > 0 ? most : std::max(1, context_tokens() / settings_.context.n_parallel));
    const std::int64_t ram = settings_.cache.ram_mib;
    sequences_ = std::make_unique<Sequences>(context_->get(), model_->memory_is_divisible(),
                                             ram < 0 ? SIZE_MAX : static_cast<std::size_t>(ram) << 20,
                                             store ? store->block_size : 0);
    make_stored_prompts(std::move(store));
    admission_ =
        std::make_unique<Admission>(*sequences_, settings_.queue, settings_.cache,
                                    static_cast<std::size_t>(settings_.context.n_parallel), counters_);
    std::unique_ptr<DraftModel> draft_model;
    if (!settings_.context.draft_model.empty()) {
        HR_ASSIGN(draft_model, DraftModel::load(*model_, settings_, context_tokens()));
    }
    if (model_->projector()) HR_TRY(make_image_reader());
    batch_ = std::make_unique<BatchBuilder>(*model_, *context_, *sequences_, images_.get(),
                                            std::move(draft_model), settings_, context_size_, counters_);
    return success();
}

Status Engine::make_image_reader() {
    if (settings_.context.batch_invariant)
        return unsupported(
                   "mmproj: images are computed by ggml's own products, which batch_invariant does not "
                   "cover; "
                   "leave one of the two out")
            .of_parameter("mmproj");
    try {
        images_ = std::make_unique<ImageReader>(*model_, thread_.waker());
    } catch (const std::exception& e) {
        return failure(Code::out_of_memory, "mmproj: there is no thread for it: {}", e.what());
    }
    return success();
}

void Engine::make_stored_prompts(std::optional<BlockStore> store) {
    if (!store) return;
    try {
        stored_ = std::make_unique<StoredPrompts>(*std::move(store), *sequences_, counters_, thread_.waker());
    } catch (const std::exception& e) {
        HR_LOG(warn, {}, "cache_dir has no effect: there is no thread for it: {}", e.what());
    }
}

/// One as large as the model's training is made smaller as long as there is no memory for it.
Status Engine::make_context(bool stores_blocks) {
    constexpr std::uint32_t kLeast = 4096;
    const bool is_flexible = settings_.context.n_ctx == kTrainedContext;
    HR_ASSIGN(llama_context_params params, context_params(*model_, settings_.context));
    if (is_flexible) params.n_ctx = most_context_tokens(*model_, params);
    if (stores_blocks && params.n_seq_max < llama_max_parallel_sequences()) {
        ++params.n_seq_max;  // Sequences keeps one apart
        params.n_ctx = std::max(params.n_ctx, params.n_seq_max);
        params.n_batch = std::max(params.n_batch, params.n_seq_max);
    }
    if (const Status enough = enough_memory_for_context(*model_, params); !enough.ok())
        return enough.error().within(model_->path());
    for (;;) {
        Result<std::unique_ptr<ComputeContext>> made = ComputeContext::create(
            *model_, params, [this] { return is_step_unwanted(); }, settings_.context.batch_invariant);
        if (made.ok()) {
            context_ = std::move(made).value();
            context_bytes_ = llm::context_bytes(*model_, params);
            return success();
        }
        if (!is_flexible || made.error().code != Code::out_of_memory || params.n_ctx <= kLeast)
            return made.error();
        params.n_ctx = std::max(kLeast, params.n_ctx / 2);
    }
}

Engine::~Engine() {
    thread_.stop();
    if (!batch_) return;
    admission_->receive(Clock::now());
    for (const auto& [id, stream] : admission_->streams())
        stream->fail(failure(Code::cancelled, "the model is being unloaded"));
    deliver_ended();
    if (stored_ && !is_lost()) stored_->store_all(kLastWrites);
}

Status Engine::check(const GenerationRequest& request) const {
    if (request.prompt.empty()) return invalid("the prompt is empty");
    HR_TRY(check_images(request));
    for (llama_token token : request.prompt)
        if ((is_image_token(token) && request.images.empty()) || token >= model_->vocabulary_size())
            return invalid("the prompt has token {}, and the vocabulary ends at {}", token,
                           model_->vocabulary_size() - 1);
    if (std::cmp_greater_equal(request.prompt.size(), context_size_))
        return failure(
            Code::prompt_too_long,
            "the prompt has {} tokens, and the context holds {} of prompt and answer together. Shorten it, "
            "or load the model with a larger n_ctx",
            request.prompt.size(), context_size_);
    for (const auto& [index, scale] : request.settings.lora)
        if (index < 0 || std::cmp_greater_equal(index, model_->adapters().size()))
            return invalid("lora: there is no adapter {}; the model was loaded with {}", index,
                           model_->adapters().size())
                .of_parameter("lora");
    return success();
}

/// Their tokens are no text's, and nobody has written others.
Status Engine::check_images(const GenerationRequest& request) const {
    std::size_t tokens = 0;
    for (const ImagePiece& piece : request.images) {
        tokens += piece.count;
        if (piece.looks_ahead && piece.count > llama_n_ubatch(context_->get()))
            return invalid(
                "an image has {} tokens, which the model reads at once, and a step has {}: load the model "
                "with "
                "a larger n_ubatch",
                piece.count, llama_n_ubatch(context_->get()));
    }
    const auto negative = std::count_if(request.prompt.begin(), request.prompt.end(), is_image_token);
    if (static_cast<std::size_t>(negative) != tokens)
        return invalid("the prompt has {} negative tokens, and {} of images", negative, tokens);
    if (!request.images.empty() && request.images.back().end() == request.prompt.size())
        return invalid("the prompt ends with an image; a text must follow, as a chat template writes one");
    return success();
}

Result<std::shared_ptr<Generation>> Engine::submit(GenerationRequest request) {
    HR_TRY(model_->check_hosts());
    HR_TRY(check(request));
    auto generation = std::make_shared<Generation>(next_id_++, std::move(request));
    generation->set_wake(thread_.waker());
    HR_ASSIGN(std::unique_ptr<Stream> stream, Stream::create(*model_, generation, context_size_));
    HR_TRY(admission_->admit(std::move(stream)));
    thread_.wake();
    return generation;
}

EngineStatistics Engine::statistics() const {
    const std::lock_guard lock(statistics_mutex_);
    EngineStatistics statistics = statistics_;
    statistics.waiting = admission_->waiting();
    statistics.rejected = admission_->rejected();
    statistics.context_tokens = context_tokens();
    return statistics;
}

void Engine::clear_cache() {
    post([this] { sequences_->evict_idle(); });
}

void Engine::run_tasks() {
    std::vector<std::packaged_task<void()>> tasks;
    {
        const std::lock_guard lock(tasks_mutex_);
        tasks.swap(tasks_);
    }
    for (auto& task : tasks) task();
}

/// Lets the loop, whose the sequences are, do it between two steps.
std::future<void> Engine::post(std::function<void()> work) {
    std::packaged_task<void()> task(std::move(work));
    std::future<void> done = task.get_future();
    {
        const std::lock_guard lock(tasks_mutex_);
        tasks_.push_back(std::move(task));
    }
    thread_.wake();
    return done;
}

/// Identifies weights, LoRA adapters and the cache's form. The adapters' scales are the variant.
std::uint64_t Engine::state_owner() const {
    const ContextSettings& c = settings_.context;
    std::string text = fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {}", model_->description(),
                                   model_->weights_sample(), fmt::join(settings_.model.kv_overrides, " "),
                                   c.type_k, c.type_v, c.swa_full, c.rope_scaling, c.rope_freq_base,
                                   c.rope_freq_scale, c.yarn_ext_factor, c.yarn_attn_factor, c.yarn_beta_fast,
                                   c.yarn_beta_slow, c.yarn_orig_ctx);
    if (c.batch_invariant) text += " invariant";  // what others have read may differ in the last bits
    return content_hash(text.data(), text.size()).low;
}

Result<SavedPrompt> Engine::save_prompt(const Tokens& tokens, const std::string& path) {
    if (has_images(tokens))
        return unsupported("the text has images, which are not saved: their keys and values are no text's");
    std::optional<PromptState> state;
    post([&] { state = sequences_->state_of(tokens); }).get();
    if (!state)
        return invalid(
            "nothing has been read there, or it is remembered no more, so there is nothing to save");
    HR_ASSIGN(const std::size_t bytes, write_prompt_file(path, state_owner(), *state));
    return SavedPrompt{static_cast<std::int64_t>(state->tokens.size()), static_cast<std::int64_t>(bytes)};
}

Result<SavedPrompt> Engine::restore_prompt(const std::string& path) {
    HR_ASSIGN(PromptState state, read_prompt_file(path, state_owner()));
    if (has_images(state.tokens)) return invalid("{}: it is damaged: it has negative tokens", path);
    const SavedPrompt restored{static_cast<std::int64_t>(state.tokens.size()),
                               static_cast<std::int64_t>(prompt_file_size(state)), state.tokens};
    bool fits = false;
    post([&] { fits = sequences_->remember(std::move(state)); }).get();
    if (!fits)
        return unsupported("{}: it has {} bytes, and the cache has {} MiB of RAM (cache_ram)", path,
                           restored.bytes, settings_.cache.ram_mib);
    return restored;
}

std::int64_t Engine::forget_prompt(const Tokens& tokens) {
    std::size_t forgotten = 0;
    post([&] {
        forgotten = sequences_->forget(tokens);
        if (stored_) stored_->forget(tokens);
    }).get();
    return static_cast<std::int64_t>(forgotten);
}

std::chrono::milliseconds Engine::pass() {
    admission_->receive(Clock::now());
    fail_if_lost();
    deliver_ended();
    run_tasks();
    admission_->evict_expired(Clock::now());
    bool computes = false;
    if (!admission_->streams().empty()) {
        computes = true;
        try {
            computes = step();
        } catch (const std::exception& e) {
            // llama.cpp throws where memory ends: the streams of this step are lost, the engine is not.
            for (const auto& [id, stream] : admission_->streams())
                if (stream->running) stream->fail(failure(Code::backend_failure, "{}", e.what()));
        }
    }
    const bool stores = stored_ && stored_->store_next(Clock::now());
    publish_statistics();
    if (computes || stores) return std::chrono::milliseconds(0);
    return admission_->streams().empty() ? kIdlePass : kDiskPass;
}

/// False where all that could run waits for the disk.
bool Engine::step() {
    const Clock::time_point now = Clock::now();
    std::vector<Stream*> active = admission_->choose_active(now);
    if (stored_) {
        const bool has_active = !active.empty();
        stored_->fetch(active, now);
        if (has_active && active.empty()) return false;
    }
    if (images_ && images_->keep_back(active) && active.empty()) return false;
    if (!batch_->build(active, admission_->expects_urgent(now))) {
        admission_->make_room();
        return true;
    }
    if (batch_->parts().empty()) return true;
    publish_running();
    const int status = batch_->run();
    if (!fail_if_lost()) {
        admission_->account(batch_->parts(), Clock::now());
        if (status == 0)
            batch_->read_back();
        else
            end_failed_step(status);
    }
    deliver_ended();
    return true;
}

void Engine::end_failed_step(int status) {
    const bool is_overtaken = is_step_overtaken();
    batch_->take_back();
    if (status == 1) return admission_->make_room();
    if (status == 2) {  // broken off, for a more urgent request or because nobody wants it
        if (is_overtaken) ++counters_.overtaken_steps;
        return;
    }
    const Status covered = context_->check_invariance();
    const Error error =
        covered.ok()
            ? failure(Code::backend_failure, "llama_decode failed with {}; llama.cpp's log says why", status)
            : covered.error();
    for (const BatchPart& part : batch_->parts()) part.stream->fail(error);
}

/// After a remote host was lost no request has a result: whoever asks again gets a model that is loaded anew.
bool Engine::fail_if_lost() {
    const Status present = model_->check_hosts();
    if (present.ok()) return false;
    for (const auto& [id, stream] : admission_->streams())
        if (!stream->has_ended()) stream->fail(present.error());
    return true;
}

void Engine::deliver_ended() {
    for (const std::unique_ptr<Stream>& stream : admission_->take_ended(Clock::now())) {
        const Outcome& outcome = stream->outcome;
        HR_LOG(debug, stream->log_context(), "{}: {} prompt tokens ({} remembered), {} generated",
               to_string(outcome.reason), outcome.prompt_tokens, outcome.cached_tokens,
               outcome.tokens.size());
        batch_->forget(*stream);
        count(outcome);
        publish_statistics();  // whoever waits for the outcome finds it counted
        stream->deliver(Clock::now());
    }
}

void Engine::count(const Outcome& outcome) {
    ++(outcome.reason == StopReason::cancelled ? counters_.cancelled
       : outcome.failed()                      ? counters_.failed
                                               : counters_.finished);
    counters_.cached_tokens += static_cast<std::uint64_t>(outcome.cached_tokens);
    counters_.drafted += static_cast<std::uint64_t>(outcome.drafted);
    counters_.accepted += static_cast<std::uint64_t>(outcome.accepted);
    counters_.pauses += static_cast<std::uint64_t>(outcome.pauses);
    counters_.shifts += static_cast<std::uint64_t>(outcome.shifts);
}

void Engine::publish_running() {
    const auto& streams = admission_->streams();
    counters_.running =
        static_cast<std::size_t>(std::count_if(streams.begin(), streams.end(), [](const auto& entry) {
            return entry.second->began.has_value() && !entry.second->has_ended();
        }));
    const std::lock_guard lock(statistics_mutex_);
    statistics_.running = counters_.running;
}

void Engine::publish_statistics() {
    publish_running();
    counters_.remembered_sequences = sequences_->idle_count();
    counters_.remembered_tokens = sequences_->remembered_tokens();
    counters_.ram_cache_bytes = sequences_->ram_bytes();
    counters_.threads = batch_->threads();
    const std::lock_guard lock(statistics_mutex_);
    statistics_ = counters_;
}

/// Whether a more urgent request waits for a step that can be read again.
bool Engine::is_step_overtaken() const { return admission_->is_overtaken() && batch_->only_reads(); }

bool Engine::is_step_unwanted() const {
    if (thread_.is_stopping()) return true;
    if (!batch_ || !batch_->can_be_broken_off()) return false;
    return is_step_overtaken() ||
           std::all_of(batch_->parts().begin(), batch_->parts().end(),
                       [](const BatchPart& part) { return part.stream->generation->is_cancelled(); });
}

}  // namespace headrace::llm
