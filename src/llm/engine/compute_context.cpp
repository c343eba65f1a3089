#include "llm/engine/compute_context.h"

#include <ggml-cpu.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <string>
#include <utility>

#include "llm/log/llama_log.h"
#include "llm/model/context_params.h"

namespace headrace::llm {

namespace {

constexpr int kUncovered = -100;  // llama_decode's own are -3 to 2

}  // namespace

ComputeContext::ComputeContext(const Model& model, std::function<bool()> is_unwanted)
    : model_(model),
      is_unwanted_(std::move(is_unwanted)),
      encodes_(llama_model_has_encoder(model.get()) && !llama_model_has_decoder(model.get())) {}

Result<std::unique_ptr<ComputeContext>> ComputeContext::create(const Model& model,
                                                               const llama_context_params& params,
                                                               std::function<bool()> is_unwanted,
                                                               bool is_invariant) {
    std::unique_ptr<ComputeContext> made(new ComputeContext(model, std::move(is_unwanted)));
    llama_context_params own = params;
    if (is_invariant) {
        HR_TRY(require_packed_kernels());
        made->invariance_ = std::make_unique<Invariance>();
        made->invariance_->watch(own);
    }
    own.abort_callback = &ComputeContext::abort_step;
    own.abort_callback_data = made.get();
    const std::string what = params.embeddings ? "a context for embeddings"
                                               : fmt::format("a context of {} tokens with {} sequences",
                                                             params.n_ctx, params.n_seq_max);
    take_llama_errors();
    try {
        made->context_.reset(llama_init_from_model(model.get(), own));
    } catch (const std::exception& e) {
        return failure(Code::out_of_memory, "{}: {}", what, e.what());
    }
    HR_TRY(model.check_hosts());
    if (!made->context_)
        return failure(Code::out_of_memory, "{}: llama.cpp cannot make {}: {}{}", model.path(), what,
                       take_llama_errors(), params.embeddings ? "" : ". Try a smaller n_ctx or n_ubatch");
    made->attach_threads(std::max(params.n_threads, params.n_threads_batch));
    if (is_invariant) HR_TRY(made->try_invariance());
    return made;
}

/// A model that is not covered is refused before anybody waits for it: one token shows all kinds of nodes.
Status ComputeContext::try_invariance() {
    llama_batch batch = llama_batch_init(1, 0, 1);
    add_token(batch, 0, 0, 0, true);
    const int status = compute(batch).status;
    llama_batch_free(batch);
    if (llama_memory_t memory = llama_get_memory(context_.get())) llama_memory_clear(memory, false);
    if (const Status covered = check_invariance(); !covered.ok())
        return covered.error().within(model_.path());
    if (status != 0)
        return failure(Code::backend_failure,
                       "{}: llama_decode failed with {} for a first token; llama.cpp's log says why",
                       model_.path(), status);
    return success();
}

/// Without a pool of its own a context starts new threads in every step.
void ComputeContext::attach_threads(int threads) {
    if (threads < 2) return;
    ggml_threadpool_params params = ggml_threadpool_params_default(threads);
    params.poll = 0;  // between steps the cores belong to others
    threadpool_ = ggml_threadpool_new(&params);
    if (threadpool_) llama_attach_threadpool(context_.get(), threadpool_, threadpool_);
}

ComputeContext::~ComputeContext() {
    if (!threadpool_) return;
    llama_detach_threadpool(context_.get());
    ggml_threadpool_free(threadpool_);
}

ComputeContext::Step ComputeContext::compute(const llama_batch& batch) {
    return run(
        [&] { return encodes_ ? llama_encode(context_.get(), batch) : llama_decode(context_.get(), batch); });
}

ComputeContext::Step ComputeContext::compute_image(const ImageRows& image) {
    llama_context* context = context_.get();
    const llama_batch_ext_ptr batch(llama_batch_ext_init(context));
    model_.projector()->add_rows(batch.get(), *image.piece, image.rows, image.first, image.count,
                                 image.position, image.sequence);
    return run([&] {
        if (image.piece->looks_ahead) llama_set_causal_attn(context, false);
        const int status = llama_process(context, LLAMA_PROCESS_TYPE_DECODE, batch.get());
        if (image.piece->looks_ahead) llama_set_causal_attn(context, true);
        return status;
    });
}

ComputeContext::Step ComputeContext::run(const std::function<int()>& decode) {
    const ComputeTurn turn(model_);
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t running = std::clock();
    if (invariance_) invariance_->begin_step();
    int status = decode();
    llama_synchronize(context_.get());
    expect_llama_errors(false);
    if (!check_invariance().ok()) status = kUncovered;
    const std::chrono::duration<double, std::milli> wall = std::chrono::steady_clock::now() - start;
    return {status, wall.count(), 1000.0 * static_cast<double>(std::clock() - running) / CLOCKS_PER_SEC};
}

bool ComputeContext::abort_step(void* self) {
    const bool unwanted = static_cast<const ComputeContext*>(self)->is_unwanted_();
    if (unwanted) expect_llama_errors(true);
    return unwanted;
}

void add_token(llama_batch& batch, llama_token token, std::size_t position, llama_seq_id sequence,
               bool has_output) {
    const int entry = batch.n_tokens++;
    batch.token[entry] = token;
    batch.pos[entry] = static_cast<llama_pos>(position);
    batch.n_seq_id[entry] = 1;
    batch.seq_id[entry][0] = sequence;
    batch.logits[entry] = has_output;
}

}  // namespace headrace::llm
