#include "llm/engine/draft_model.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "llm/engine/compute_context.h"
#include "llm/engine/sequences.h"
#include "llm/model/context_params.h"

namespace headrace::llm {
namespace {

/// Tokens must mean the same to both models.
Status same_vocabulary(const Model& main, const Model& draft) {
    const int size = main.vocabulary_size();
    if (draft.vocabulary_size() != size)
        return invalid("draft_model {}: its vocabulary has {} tokens, and that of {} has {}", draft.path(),
                       draft.vocabulary_size(), main.path(), size);
    for (llama_token token = 0; token < size; ++token)
        if (main.piece(token, true) != draft.piece(token, true))
            return invalid("draft_model {}: its token {} is '{}', and that of {} is '{}'", draft.path(),
                           token, draft.piece(token, true), main.path(), main.piece(token, true));
    return success();
}

/// What the draft model's context has of its own.
ContextSettings own_context(ContextSettings settings) {
    settings.type_k = settings.draft_type_k;
    settings.type_v = settings.draft_type_v;
    if (settings.draft_threads > 0) settings.n_threads = settings.draft_threads;
    if (settings.draft_threads_batch > 0)
        settings.n_threads_batch = settings.draft_threads_batch;
    else if (settings.draft_threads > 0)
        settings.n_threads_batch = settings.draft_threads;
    return settings;
}

}  // namespace

Result<std::unique_ptr<DraftModel>> DraftModel::load(const Model& main, const EngineSettings& settings,
                                                     int context_tokens) {
    std::unique_ptr<DraftModel> draft(new DraftModel);
    ModelSettings model;
    model.n_gpu_layers = settings.context.draft_gpu_layers;
    model.devices = settings.context.draft_devices;
    model.override_tensor = settings.context.draft_override_tensor;
    Result<std::shared_ptr<const Model>> loaded = Model::load(settings.context.draft_model, model);
    if (!loaded.ok()) return loaded.error().within("draft_model").of_parameter("draft_model");
    draft->model_ = std::move(loaded).value();
    HR_TRY(same_vocabulary(main, *draft->model_));
    if (!draft->model_->memory_is_divisible())
        return unsupported("draft_model {}: a recurrent model cannot take tokens back",
                           draft->model_->path());
    HR_ASSIGN(llama_context_params params, context_params(*draft->model_, own_context(settings.context)));
    params.n_ctx = static_cast<std::uint32_t>(context_tokens);
    params.n_seq_max = static_cast<std::uint32_t>(settings.context.n_parallel);
    draft->context_.reset(llama_init_from_model(draft->model_->get(), params));
    if (!draft->context_)
        return failure(Code::out_of_memory,
                       "draft_model {}: llama.cpp cannot make its context (its log says why)",
                       draft->model_->path());
    draft->batch_ = static_cast<int>(llama_n_batch(draft->context_.get()));
    return draft;
}

DraftModel::Place* DraftModel::place_of(std::uint64_t stream) {
    const auto found = places_.find(stream);
    if (found != places_.end()) return &found->second;
    std::set<llama_seq_id> used;
    for (const auto& [id, place] : places_) used.insert(place.sequence);
    for (llama_seq_id id = 0; std::cmp_less(id, llama_n_seq_max(context_.get())); ++id)
        if (!used.contains(id)) return &(places_[stream] = {id, {}});
    return nullptr;
}

bool DraftModel::decode(Place& place, const llama_token* tokens, int count) {
    for (int done = 0; done < count;) {
        const int size = std::min(batch_, count - done);
        llama_batch batch = llama_batch_init(size, 0, 1);
        for (int i = 0; i < size; ++i)
            add_token(batch, tokens[done + i], place.tokens.size() + static_cast<std::size_t>(i),
                      place.sequence, done + i + 1 == count);
        const int status = llama_decode(context_.get(), batch);
        llama_batch_free(batch);
        if (status != 0) return false;
        place.tokens.insert(place.tokens.end(), tokens + done, tokens + done + size);
        done += size;
    }
    return true;
}

/// Brings the memory to the history's end; its last token is always read again, for its logits.
bool DraftModel::read(Place& place, const Tokens& history) {
    const std::size_t known = std::min(common_prefix(place.tokens, history), history.size() - 1);
    llama_memory_seq_rm(llama_get_memory(context_.get()), place.sequence, static_cast<llama_pos>(known), -1);
    place.tokens.resize(known);
    return decode(place, history.data() + known, static_cast<int>(history.size() - known));
}

Tokens DraftModel::propose(std::uint64_t stream, const Tokens& history, int most, float least_probability) {
    Place* place = most > 0 ? place_of(stream) : nullptr;
    if (!place) return {};
    const ComputeTurn turn(*model_);
    if (!read(*place, history)) {
        forget(stream);
        return {};
    }
    Tokens draft;
    const int size = model_->vocabulary_size();
    while (std::cmp_less(draft.size(), most)) {
        const float* logits = llama_get_logits_ith(context_.get(), -1);
        const float* best = std::max_element(logits, logits + size);
        double sum = 0;
        for (int token = 0; token < size; ++token)
            sum += std::exp(static_cast<double>(logits[token] - *best));
        const auto token = static_cast<llama_token>(best - logits);
        if (1 / sum < least_probability || model_->ends_answer(token)) break;
        draft.push_back(token);
        if (std::cmp_less(draft.size(), most) && !decode(*place, &token, 1)) break;
    }
    return draft;
}

void DraftModel::forget(std::uint64_t stream) {
    const auto found = places_.find(stream);
    if (found == places_.end()) return;
    llama_memory_seq_rm(llama_get_memory(context_.get()), found->second.sequence, -1, -1);
    places_.erase(found);
}

}  // namespace headrace::llm
