#include "llm/engine/engine.h"

#include <ggml-cpu.h>
#include <llama.h>

#include <algorithm>

#include "llm/log/log.h"
#include "llm/model/context_memory.h"
#include "llm/model/context_params.h"

namespace headrace::llm {

Engine::Engine(std::shared_ptr<const Model> model, const EngineSettings& settings)
    : model_(std::move(model)),
      settings_(settings),
      queue_(std::chrono::milliseconds(settings.queue.aging_ms)),
      prompt_pacing_(static_cast<double>(settings.queue.step_target_ms), settings.context.n_ubatch) {}

Result<std::shared_ptr<Engine>> Engine::start(std::shared_ptr<const Model> model,
                                              const EngineSettings& settings) {
    std::shared_ptr<Engine> engine(new Engine(std::move(model), settings));
    HR_TRY(engine->make_context());
    if (!settings.context.draft_model.empty()) {
        HR_ASSIGN(engine->draft_model_, DraftModel::load(*engine->model_, settings));
    }
    HR_TRY(engine->thread_.start([self = engine.get()] { self->loop(); }));
    return engine;
}

Status Engine::make_context() {
    HR_ASSIGN(llama_context_params params, context_params(*model_, settings_.context));
    if (const Status enough = enough_memory_for_context(*model_, params); !enough.ok())
        return enough.error().within(model_->path());
    decode_threads_ = params.n_threads;
    params.abort_callback = &Engine::abort_step;
    params.abort_callback_data = this;
    take_llama_errors();
    try {
        context_.reset(llama_init_from_model(model_->get(), params));
    } catch (const std::exception& e) {
        return failure(Code::out_of_memory, "a context of {} tokens: {}", params.n_ctx, e.what());
    }
    HR_TRY(model_->check_hosts());
    if (!context_)
        return failure(Code::out_of_memory,
                       "{}: llama.cpp cannot make a context of {} tokens with {} sequences: {}. Try a "
                       "smaller n_ctx or n_ubatch",
                       model_->path(), params.n_ctx, params.n_seq_max, take_llama_errors());
    if (!llama_get_memory(context_.get()))
        return unsupported(
            "{}: the model has no memory of tokens, so it cannot generate; use it for embeddings",
            model_->path());
    context_size_ = static_cast<int>(llama_n_ctx_seq(context_.get()));
    const int64_t ram = settings_.cache.ram_mib;
    sequences_ = std::make_unique<Sequences>(context_.get(), model_->memory_is_divisible(),
                                             ram < 0 ? SIZE_MAX : static_cast<size_t>(ram) << 20);
    batch_ = llama_batch_init(params.n_batch, 0, 1);
    most_active_ = static_cast<size_t>(settings_.context.n_parallel);
    most_threads_ = std::max(params.n_threads, params.n_threads_batch);
    thread_pacing_ =
        std::make_unique<ThreadPacing>(most_threads_, settings_.context.adapt_threads, IdleCores());
    attach_threads(most_threads_);
    return success();
}

/// Without a pool of its own a context starts new threads in every step.
void Engine::attach_threads(int threads) {
    if (threads < 2) return;
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    params.poll = 0;  // between steps the cores belong to others
    auto* pool = ggml_threadpool_new(&params);
    if (!pool) return;
    threadpool_ = pool;
    llama_attach_threadpool(context_.get(), pool, pool);
}

Engine::~Engine() {
    stopping_ = true;
    {
        const std::lock_guard lock(inbox_->mutex);
        inbox_->woken = true;
    }
    inbox_->changed.notify_all();
    thread_.join();
    if (threadpool_) {
        llama_detach_threadpool(context_.get());
        ggml_threadpool_free(static_cast<ggml_threadpool*>(threadpool_));
    }
    if (batch_.token) llama_batch_free(batch_);
}

Status Engine::check(const GenerationRequest& request) const {
    if (request.prompt.empty()) return invalid("the prompt is empty");
    for (llama_token token : request.prompt)
        if (token < 0 || token >= model_->vocabulary_size())
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
                           model_->adapters().size());
    return success();
}

/// Counts one more that waits, unless too many do.
Status Engine::take_place() {
    size_t waiting = waiting_;
    do {
        if (std::cmp_less(waiting, settings_.queue.max_waiting)) continue;
        const std::lock_guard lock(statistics_mutex_);
        ++statistics_.rejected;
        return failure(Code::busy,
                       "{} requests are waiting already, and queue.max_waiting is {}. Try again later",
                       waiting, settings_.queue.max_waiting);
    } while (!waiting_.compare_exchange_weak(waiting, waiting + 1));
    return success();
}

Result<std::shared_ptr<Generation>> Engine::submit(GenerationRequest request) {
    HR_TRY(model_->check_hosts());
    HR_TRY(check(request));
    auto generation = std::make_shared<Generation>(next_id_++, std::move(request));
    HR_ASSIGN(std::unique_ptr<Stream> stream, Stream::create(*model_, generation, context_size_));
    HR_TRY(take_place());
    generation->set_wake([weak = std::weak_ptr(inbox_)] {
        const auto inbox = weak.lock();
        if (!inbox) return;
        {
            const std::lock_guard lock(inbox->mutex);
            inbox->woken = true;
        }
        inbox->changed.notify_all();
    });
    {
        const std::lock_guard lock(inbox_->mutex);
        inbox_->most_urgent =
            std::max<int>(inbox_->most_urgent, static_cast<int>(generation->request().settings.priority));
        inbox_->arrived.push_back(std::move(stream));
    }
    inbox_->changed.notify_all();
    return generation;
}

EngineStatistics Engine::statistics() const {
    const std::lock_guard lock(statistics_mutex_);
    EngineStatistics statistics = statistics_;
    statistics.waiting = waiting_;
    statistics.context_tokens = context_size_;  // before the first step, too
    return statistics;
}

void Engine::clear_cache() {
    clear_cache_ = true;
    const std::lock_guard lock(inbox_->mutex);
    inbox_->woken = true;
    inbox_->changed.notify_all();
}

/// Whether a more urgent request waits for a step that reads prompts, which can be read again; steps of
/// streams that decode are short.
bool Engine::step_is_overtaken() const { return step_only_reads_ && inbox_->most_urgent > step_priority_; }

/// Called by ggml between two nodes of a step, on the thread that called llama_decode: true when nobody wants
/// its result any more.
bool Engine::abort_step(void* data) {
    const auto* self = static_cast<const Engine*>(data);
    const bool unwanted =
        self->stopping_ ||
        (!self->cells_move_ && !self->in_batch_.empty() &&
         (self->step_is_overtaken() || std::all_of(self->in_batch_.begin(), self->in_batch_.end(),
                                                   [](const Generation* g) { return g->is_cancelled(); })));
    if (unwanted) expect_llama_errors(true);
    return unwanted;
}

}  // namespace headrace::llm
