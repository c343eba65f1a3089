#include "llm/embedder.h"

#include <common/common.h>

#include <algorithm>

#include "llm/context_params.h"
#include "llm/log.h"

namespace headrace::llm {
namespace {

enum llama_pooling_type pooling_of(const std::string& name) {
    if (name == "none") return LLAMA_POOLING_TYPE_NONE;
    if (name == "mean") return LLAMA_POOLING_TYPE_MEAN;
    if (name == "cls") return LLAMA_POOLING_TYPE_CLS;
    if (name == "last") return LLAMA_POOLING_TYPE_LAST;
    if (name == "rank") return LLAMA_POOLING_TYPE_RANK;
    return LLAMA_POOLING_TYPE_UNSPECIFIED;
}

constexpr uint32_t most_texts = 64;  // in a batch

}  // namespace

uint32_t size_for_embeddings(const ContextSettings& settings, uint32_t trained,
                             llama_context_params& params) {
    const uint32_t longest = settings.n_ctx > 0 ? std::min(trained, params.n_ctx) : trained;
    params.embeddings = true;
    params.pooling_type = pooling_of(settings.pooling);
    if (settings.attention == "causal") params.attention_type = LLAMA_ATTENTION_TYPE_CAUSAL;
    if (settings.attention == "non-causal") params.attention_type = LLAMA_ATTENTION_TYPE_NON_CAUSAL;
    params.n_seq_max = most_texts;
    // A text must be in one micro-batch: attention that looks ahead cannot be cut.
    params.n_ctx = params.n_batch = params.n_ubatch = std::max(longest, 512u);
    return longest;
}

Result<std::shared_ptr<Embedder>> Embedder::start(std::shared_ptr<const Model> model,
                                                  const Settings& settings) {
    std::shared_ptr<Embedder> embedder(new Embedder(std::move(model)));
    HR_ASSIGN(llama_context_params params, context_params(*embedder->model_, settings.context));
    const auto trained = static_cast<uint32_t>(std::max(1, llama_model_n_ctx_train(embedder->model_->get())));
    // The model has no positions beyond.
    embedder->longest_ = size_for_embeddings(settings.context, trained, params);
    take_llama_errors();
    try {
        embedder->context_.reset(llama_init_from_model(embedder->model_->get(), params));
    } catch (const std::exception& e) {
        return failure(Code::out_of_memory, "a context for embeddings: {}", e.what());
    }
    if (!embedder->context_)
        return failure(Code::out_of_memory, "{}: llama.cpp cannot make a context for embeddings: {}",
                       embedder->model_->path(), take_llama_errors());
    const auto pooling = ::llama_pooling_type(embedder->context_.get());
    HR_TRY(embedder->model_->check_hosts());
    embedder->pooled_ = pooling != LLAMA_POOLING_TYPE_NONE;
    // A ranking model gives a score for each of its classes.
    embedder->scores_ = pooling == LLAMA_POOLING_TYPE_RANK;
    const auto* raw = embedder->model_->get();
    embedder->size_ =
        embedder->scores_ ? static_cast<int>(llama_model_n_cls_out(raw)) : llama_model_n_embd_out(raw);
    return embedder;
}

int Embedder::count_tokens(const std::string& text) const {
    return static_cast<int>(model_->tokenize(text, true, false).size());
}

Result<std::vector<TextVectors>> Embedder::embed(std::span<const std::string> texts, int normalize) {
    const std::lock_guard lock(mutex_);
    const size_t most = llama_n_ubatch(context_.get());
    std::vector<Tokens> tokens;
    for (const std::string& text : texts) {
        if (text.size() > model_->most_bytes(longest_))
            return failure(
                Code::prompt_too_long,
                "text {} has {} bytes, which are more than the {} tokens that the model reads at most",
                tokens.size(), text.size(), longest_);
        tokens.push_back(model_->tokenize(text, true, false));
        if (tokens.back().empty()) return invalid("text {} is empty", tokens.size() - 1);
        if (tokens.back().size() > longest_)
            return failure(Code::prompt_too_long, "text {} has {} tokens, and the model reads at most {}",
                           tokens.size() - 1, tokens.back().size(), longest_);
    }
    std::vector<TextVectors> vectors;
    for (size_t begin = 0; begin < tokens.size();) {
        size_t end = begin, total = 0;
        while (end < tokens.size() && end - begin < most_texts && total + tokens[end].size() <= most)
            total += tokens[end++].size();
        HR_TRY(run(std::span(tokens).subspan(begin, end - begin), normalize, vectors));
        begin = end;
    }
    return vectors;
}

Status Embedder::run(std::span<const Tokens> texts, int normalize, std::vector<TextVectors>& vectors) {
    if (llama_memory_t memory = llama_get_memory(context_.get())) llama_memory_clear(memory, true);
    size_t total = 0;
    for (const Tokens& text : texts) total += text.size();
    llama_batch batch = llama_batch_init(static_cast<int>(total), 0, 1);
    for (size_t i = 0; i < texts.size(); ++i) {
        for (size_t k = 0; k < texts[i].size(); ++k) {
            const int entry = batch.n_tokens++;
            batch.token[entry] = texts[i][k];
            batch.pos[entry] = static_cast<llama_pos>(k);
            batch.n_seq_id[entry] = 1;
            batch.seq_id[entry][0] = static_cast<llama_seq_id>(i);
            batch.logits[entry] = 1;
        }
    }
    int status = 0;
    {
        const ComputeTurn turn(*model_);
        status = llama_model_has_encoder(model_->get()) && !llama_model_has_decoder(model_->get())
                     ? llama_encode(context_.get(), batch)
                     : llama_decode(context_.get(), batch);
        llama_synchronize(context_.get());
    }
    llama_batch_free(batch);
    HR_TRY(model_->check_hosts());
    if (status != 0)
        return failure(Code::backend_failure, "llama.cpp failed with {} (its log says why)", status);
    int entry = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
        TextVectors& rows = vectors.emplace_back(pooled_ ? 1 : texts[i].size());
        for (std::vector<float>& row : rows) {
            const float* vector = pooled_
                                      ? llama_get_embeddings_seq(context_.get(), static_cast<llama_seq_id>(i))
                                      : llama_get_embeddings_ith(context_.get(), entry++);
            if (!vector) return failure(Code::backend_failure, "the model gave no embedding for text {}", i);
            row.resize(static_cast<size_t>(size()));
            common_embd_normalize(vector, row.data(), size(), scores_ || !pooled_ ? -1 : normalize);
        }
    }
    return success();
}

}  // namespace headrace::llm
