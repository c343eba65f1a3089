#include "llm/engine/embedder.h"

#include <common/common.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "llm/model/context_params.h"

namespace headrace::llm {

Embedder::Embedder(std::shared_ptr<const Model> model, const QueueSettings& settings)
    : model_(std::move(model)),
      max_waiting_(settings.max_waiting),
      queue_(std::chrono::milliseconds(settings.aging_ms)) {}

Result<std::shared_ptr<Embedder>> Embedder::start(std::shared_ptr<const Model> model,
                                                  const EngineSettings& settings) {
    if (settings.context.batch_invariant)
        return unsupported(
                   "{}: batch_invariant is for models that write, and this one is for vectors; leave it out",
                   model->path())
            .of_parameter("batch_invariant");
    std::shared_ptr<Embedder> embedder(new Embedder(std::move(model), settings.queue));
    HR_TRY(embedder->make_context(settings.context));
    HR_TRY(embedder->thread_.start([self = embedder.get()] { return self->pass(); }));
    return embedder;
}

Embedder::~Embedder() {
    thread_.stop();
    for (auto& [id, waiting] : waiting_)
        waiting.embedding->fail(failure(Code::cancelled, "the model is being unloaded"));
}

Status Embedder::make_context(const ContextSettings& settings) {
    HR_ASSIGN(llama_context_params params, context_params(*model_, settings));
    const auto trained = static_cast<std::uint32_t>(std::max(1, llama_model_n_ctx_train(model_->get())));
    // The model has no positions beyond.
    longest_ = size_for_embeddings(settings, trained, params);
    HR_ASSIGN(context_, ComputeContext::create(*model_, params, [this] { return is_step_unwanted(); }));
    const auto pooling = ::llama_pooling_type(context_->get());
    pooled_ = pooling != LLAMA_POOLING_TYPE_NONE;
    // A ranking model gives a score for each of its classes.
    scores_ = pooling == LLAMA_POOLING_TYPE_RANK;
    size_ = scores_ ? static_cast<int>(llama_model_n_cls_out(model_->get()))
                    : llama_model_n_embd_out(model_->get());
    return success();
}

Result<std::vector<Tokens>> Embedder::read(std::span<const std::string> texts) const {
    std::vector<Tokens> tokens;
    for (const std::string& text : texts) {
        if (text.size() > model_->most_bytes(longest_))
            return failure(Code::prompt_too_long,
                           "text {} is too large: it has {} bytes, which are more than the {} tokens that "
                           "the model reads at most",
                           tokens.size(), text.size(), longest_);
        tokens.push_back(model_->tokenize(text, true, false));
    }
    return tokens;
}

Status Embedder::check(std::span<const Tokens> texts) const {
    const int vocabulary = model_->vocabulary_size();
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (texts[i].empty()) return invalid("text {} is empty", i);
        if (texts[i].size() > longest_)
            return failure(Code::prompt_too_long,
                           "text {} is too large: it has {} tokens, and the model reads at most {}", i,
                           texts[i].size(), longest_);
        for (const llama_token token : texts[i])
            if (token < 0 || token >= vocabulary)
                return invalid("text {} has token {}, and the vocabulary ends at {}", i, token,
                               vocabulary - 1);
    }
    return success();
}

Result<std::shared_ptr<Embedding>> Embedder::submit(EmbeddingRequest request) {
    HR_TRY(model_->check_hosts());
    if (request.texts.empty() && request.tokens.empty()) return invalid("no text is given");
    std::vector<Tokens> tokens = std::move(request.tokens);
    if (tokens.empty()) {
        HR_ASSIGN(tokens, read(request.texts));
    }
    HR_TRY(check(tokens));
    std::shared_ptr<Embedding> embedding;
    {
        const std::lock_guard lock(mutex_);
        drop_ended();
        if (const Status room = check_waiting(count_waiting(), max_waiting_); !room.ok()) {
            ++statistics_.rejected;
            return room.error();
        }
        embedding = std::make_shared<Embedding>(next_id_++, std::move(tokens), std::move(request));
        waiting_[embedding->id()] = {embedding};
        queue_.add(embedding->id(), embedding->request().settings.priority, embedding->request().owner,
                   Clock::now());
        ++statistics_.requests;
    }
    thread_.wake();
    return embedding;
}

Result<std::vector<TextVectors>> Embedder::embed(std::vector<std::string> texts,
                                                 const RequestSettings& settings) {
    if (texts.empty()) return std::vector<TextVectors>();
    HR_ASSIGN(const auto embedding, submit({.texts = std::move(texts), .settings = settings, .owner = ""}));
    return embedding->wait();
}

EmbedderStatistics Embedder::statistics() const {
    const std::lock_guard lock(mutex_);
    EmbedderStatistics statistics = statistics_;
    statistics.waiting = count_waiting();
    statistics.running = waiting_.size() - statistics.waiting;
    return statistics;
}

/// Those that no batch was computed for; with mutex_ held.
std::size_t Embedder::count_waiting() const {
    return static_cast<std::size_t>(std::count_if(waiting_.begin(), waiting_.end(), [](const auto& entry) {
        return !entry.second.embedding->has_begun();
    }));
}

/// Drops texts of requests that were cancelled or are out of time; with mutex_ held.
void Embedder::drop_ended() {
    for (auto entry = waiting_.begin(); entry != waiting_.end();) {
        const Embedding& embedding = *entry->second.embedding;
        if (&embedding == running_ || !embedding.is_over()) {
            ++entry;
            continue;
        }
        ++statistics_.failed;
        queue_.remove(entry->first);
        entry = waiting_.erase(entry);
    }
}

std::chrono::milliseconds Embedder::pass() {
    std::unique_lock lock(mutex_);
    drop_ended();
    if (waiting_.empty()) return LoopThread::kUntilWoken;
    Waiting& waiting = waiting_.at(queue_.serving_order().front());
    const std::shared_ptr<Embedding> embedding = waiting.embedding;
    embedding->begin();
    const std::span<const Tokens> texts = batch_of(waiting);
    running_ = embedding.get();
    lock.unlock();
    Result<std::vector<TextVectors>> vectors = run(texts, embedding->request().settings.embd_normalize);
    lock.lock();
    running_ = nullptr;
    account(waiting, texts, std::move(vectors));
    return {};
}

/// What a batch gave; with mutex_ held.
void Embedder::account(Waiting& waiting, std::span<const Tokens> texts,
                       Result<std::vector<TextVectors>> vectors) {
    const std::shared_ptr<Embedding> embedding = waiting.embedding;
    std::size_t tokens = 0;
    for (const Tokens& text : texts) tokens += text.size();
    ++statistics_.steps;
    if (!vectors.ok() && vectors.error().code == Code::cancelled) ++statistics_.broken_off;
    statistics_.tokens += tokens;
    queue_.account(embedding->id(), static_cast<std::int64_t>(tokens));
    queue_.served({embedding->id()}, Clock::now());
    if (embedding->is_over()) return drop_ended();
    waiting.done += texts.size();
    if (vectors.ok() && waiting.done < embedding->texts().size()) {
        embedding->add(std::move(vectors).value());
        return;
    }
    ++(vectors.ok() ? statistics_.finished : statistics_.failed);  // whoever waits finds it counted
    queue_.remove(embedding->id());
    waiting_.erase(embedding->id());
    if (vectors.ok())
        embedding->add(std::move(vectors).value());
    else
        embedding->fail(vectors.error());
}

/// As many of the texts that are left as fit into a step.
std::span<const Tokens> Embedder::batch_of(const Waiting& waiting) const {
    const std::span<const Tokens> texts = std::span(waiting.embedding->texts()).subspan(waiting.done);
    const std::size_t most = llama_n_ubatch(context_->get());
    std::size_t count = 0, total = 0;
    while (count < texts.size() && count < kMostTexts && total + texts[count].size() <= most)
        total += texts[count++].size();
    return texts.first(count);
}

Result<std::vector<TextVectors>> Embedder::run(std::span<const Tokens> texts, int normalize) {
    if (llama_memory_t memory = llama_get_memory(context_->get())) llama_memory_clear(memory, true);
    std::size_t total = 0;
    for (const Tokens& text : texts) total += text.size();
    llama_batch batch = llama_batch_init(static_cast<int>(total), 0, 1);
    for (std::size_t i = 0; i < texts.size(); ++i)
        for (std::size_t k = 0; k < texts[i].size(); ++k)
            add_token(batch, texts[i][k], k, static_cast<llama_seq_id>(i), true);
    int status = 0;
    try {
        status = context_->compute(batch).status;
    } catch (const std::exception& e) {  // llama.cpp throws where memory ends
        llama_batch_free(batch);
        return failure(Code::backend_failure, "{}", e.what());
    }
    llama_batch_free(batch);
    HR_TRY(model_->check_hosts());
    if (status == 2) return failure(Code::cancelled, "nobody wants it any more");
    if (status != 0)
        return failure(Code::backend_failure, "llama.cpp failed with {} (its log says why)", status);
    return vectors_of(texts, normalize);
}

Result<std::vector<TextVectors>> Embedder::vectors_of(std::span<const Tokens> texts, int normalize) {
    std::vector<TextVectors> vectors;
    int entry = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        TextVectors& rows = vectors.emplace_back(pooled_ ? 1 : texts[i].size());
        for (std::vector<float>& row : rows) {
            const float* vector =
                pooled_ ? llama_get_embeddings_seq(context_->get(), static_cast<llama_seq_id>(i))
                        : llama_get_embeddings_ith(context_->get(), entry++);
            if (!vector) return failure(Code::backend_failure, "the model gave no embedding for a text");
            row.resize(static_cast<std::size_t>(size()));
            common_embd_normalize(vector, row.data(), size(), scores_ || !pooled_ ? -1 : normalize);
        }
    }
    return vectors;
}

bool Embedder::is_step_unwanted() const { return thread_.is_stopping() || (running_ && running_->is_over()); }

}  // namespace headrace::llm
