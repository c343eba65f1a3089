// A step's batch: the tokens of streams that decode, with drafts, then pieces of prompts.
#include <algorithm>
#include <ctime>

#include "llm/engine/engine.h"
#include "llm/log/log.h"
#include "llm/model/context_params.h"

namespace headrace::llm {
namespace {

constexpr int most_drafted = 32;  // tokens of all drafts in a step: more cost as much as they save

}  // namespace

void Engine::build_batch(const std::vector<Stream*>& active, std::vector<Work>& work) {
    batch_.n_tokens = 0;
    int room = static_cast<int>(llama_n_batch(context_.get()));
    std::vector<Stream*> prompts;
    int decoding = 0;
    for (Stream* stream : active) {
        if (!fits_context(*stream)) continue;
        if (stream->is_decoding())
            ++decoding;
        else
            prompts.push_back(stream);
    }
    const int free = make_free(decoding);
    if (free < decoding) return make_room();
    room = std::min(room, free);
    for (Stream* stream : active)
        if (stream->outcome.reason == StopReason::none && stream->is_decoding())
            add_decoding(*stream, std::min(most_drafted, room - decoding) / std::max(1, decoding), work);

    std::vector<Stream*> before, reading;
    for (Stream* stream : prompts) {
        if (stream->shares)
            stream->decoded = static_cast<size_t>(sequences_->extend(*stream->sequence, stream->tokens));
        if (stream->outcome.tokens.empty())
            stream->outcome.cached_tokens =
                std::max(stream->outcome.cached_tokens,
                         static_cast<int>(stream->decoded) - stream->outcome.read_tokens);
        if (!waits_for_another(*stream, before)) reading.push_back(stream);
        before.push_back(stream);
    }
    if (reading.empty()) return;
    int wanted = 0;
    for (const Stream* stream : reading)
        wanted += static_cast<int>(std::min<size_t>(stream->pending(), INT16_MAX));
    const int others = reads_guardedly() ? std::max(1, batch_.n_tokens) : batch_.n_tokens;
    int budget =
        std::min({prompt_pacing_.budget(others), wanted, static_cast<int>(llama_n_batch(context_.get()))});
    budget = std::min(budget, make_free(batch_.n_tokens + budget) - batch_.n_tokens);
    if (budget <= 0 && work.empty()) return make_room();
    // The shortest first, so that what it leaves of its share goes to the longer ones.
    std::stable_sort(reading.begin(), reading.end(),
                     [](const Stream* a, const Stream* b) { return a->pending() < b->pending(); });
    for (size_t i = 0; i < reading.size() && budget > 0; ++i) {
        const int share = std::max(1, budget / static_cast<int>(reading.size() - i));
        const int added = std::min(share, static_cast<int>(reading[i]->pending()));
        add_prompt(*reading[i], added, work);
        budget -= added;
    }
}

/// Where more urgent requests come now and then, prompts are read in short steps even when nobody decodes.
bool Engine::reads_guardedly() const {
    return queue_.top() < guard_priority_ && Clock::now() < guarded_until_;
}

/// Whether a stream before it is reading tokens that both have: they will be shared.
bool Engine::waits_for_another(const Stream& stream, const std::vector<Stream*>& before) const {
    if (!model_->memory_is_divisible() || !stream.shares) return false;
    return std::any_of(before.begin(), before.end(), [&](const Stream* other) {
        if (other->variant != stream.variant || other->decoded < stream.decoded) return false;
        const size_t common = std::min(common_prefix(other->tokens, stream.tokens), stream.tokens.size() - 1);
        return common > stream.decoded && common > other->decoded;
    });
}

void Engine::add_entries(Stream& stream, const llama_token* tokens, size_t count, bool all_outputs,
                         bool last_output) {
    const auto position = static_cast<llama_pos>(stream.decoded);
    for (size_t i = 0; i < count; ++i) {
        const int entry = batch_.n_tokens++;
        batch_.token[entry] = tokens[i];
        batch_.pos[entry] = position + static_cast<llama_pos>(i);
        batch_.n_seq_id[entry] = 1;
        batch_.seq_id[entry][0] = *stream.sequence;
        batch_.logits[entry] = all_outputs || (last_output && i + 1 == count);
    }
}

/// The draft model's guess when there is one, or else what followed the same tokens before.
Tokens Engine::draft_for(Stream& stream, int most) {
    if (!model_->memory_is_divisible() || !stream.settings().speculation.enabled) return {};
    if (!draft_model_) return stream.drafts.propose(stream.tokens, most);
    const int wanted = stream.drafts.wanted(most);
    return wanted > 0 ? draft_model_->propose(stream.generation->id(), stream.tokens, wanted) : Tokens();
}

void Engine::add_decoding(Stream& stream, int spare, std::vector<Work>& work) {
    const int left =
        std::min(context_size_ - static_cast<int>(stream.tokens.size()),
                 stream.settings().n_predict < 0
                     ? context_size_
                     : stream.settings().n_predict - static_cast<int>(stream.outcome.tokens.size()) - 1);
    Work part{&stream, {}, batch_.n_tokens, 1, true};
    part.draft = draft_for(stream, std::min(spare, left));
    Tokens tokens{stream.tokens.back()};
    tokens.insert(tokens.end(), part.draft.begin(), part.draft.end());
    part.count = static_cast<int>(tokens.size());
    add_entries(stream, tokens.data(), tokens.size(), true, true);
    work.push_back(std::move(part));
}

void Engine::add_prompt(Stream& stream, int most, std::vector<Work>& work) {
    const auto count = static_cast<size_t>(most);
    const bool last = count == stream.pending();
    work.push_back({&stream, {}, batch_.n_tokens, most, last});
    add_entries(stream, stream.tokens.data() + stream.decoded, count, false, last);
    stream.outcome.read_tokens += most;
}

/// Makes room in a stream's context when it is full. False when the stream has ended for that.
bool Engine::fits_context(Stream& stream) {
    if (std::cmp_less_equal(stream.tokens.size(), context_size_)) return true;
    const RequestSettings& settings = stream.settings();
    if (!settings_.context.context_shift) {
        stream.end(StopReason::context_full,
                   fmt::format("the context of {} tokens is full; context_shift would go on", context_size_));
        return false;
    }
    const auto most_kept = static_cast<size_t>(std::max(0, context_size_ - 4));
    const size_t kept =
        std::min(settings.n_keep < 0 ? stream.prompt_size : static_cast<size_t>(settings.n_keep), most_kept);
    const size_t left = stream.tokens.size() - 1 - kept;
    const size_t dropped =
        std::clamp<size_t>(settings.n_discard > 0 ? static_cast<size_t>(settings.n_discard) : left / 2, 1,
                           std::max<size_t>(1, left - 1));
    if (sequences_->shift(*stream.sequence, kept, dropped))
        cells_move_ = true;
    else
        sequences_->truncate(*stream.sequence, std::min(kept, stream.decoded));  // read what stays again
    stream.tokens.erase(stream.tokens.begin() + static_cast<std::ptrdiff_t>(kept),
                        stream.tokens.begin() + static_cast<std::ptrdiff_t>(kept + dropped));
    stream.decoded = sequences_->size(*stream.sequence);
    stream.prompt_size = std::min(stream.prompt_size, kept);
    stream.drafts.forget();
    ++stream.outcome.shifts;
    return true;
}

int Engine::run_batch(const std::vector<Work>& work) {
    use_adapters(*work.front().stream);
    in_batch_.clear();
    for (const Work& part : work) in_batch_.push_back(part.stream->generation.get());
    step_priority_ = queue_.top();
    step_only_reads_ =
        std::none_of(work.begin(), work.end(), [](const Work& part) { return part.stream->is_decoding(); });
    const ComputeTurn turn(*model_);
    const int threads = thread_pacing_->threads();
    llama_set_n_threads(context_.get(), std::min(threads, decode_threads_), threads);
    const Clock::time_point start = Clock::now();
    const std::clock_t running = std::clock();
    const int status = llama_decode(context_.get(), batch_);
    llama_synchronize(context_.get());
    expect_llama_errors(false);
    cells_move_ = false;
    step_time_ = {std::chrono::duration<double, std::milli>(Clock::now() - start).count(),
                  1000.0 * static_cast<double>(std::clock() - running) / CLOCKS_PER_SEC};
    return status;
}

int Engine::make_free(int tokens) {
    while (std::cmp_less(sequences_->room(), tokens) && sequences_->evict_one()) ++counters_.evictions;
    return static_cast<int>(std::min(sequences_->room(), static_cast<size_t>(INT32_MAX)));
}

void Engine::use_adapters(const Stream& stream) {
    if (stream.variant == variant_ || model_->adapters().empty()) return;
    std::vector<llama_adapter_lora*> adapters = model_->adapters();
    std::vector<float> scales;
    for (const auto& [path, scale] : settings_.model.lora) scales.push_back(scale);
    if (!stream.settings().lora.empty()) std::fill(scales.begin(), scales.end(), 0.0f);
    for (const auto& [index, scale] : stream.settings().lora) scales[static_cast<size_t>(index)] = scale;
    llama_set_adapters_lora(context_.get(), adapters.data(), adapters.size(), scales.data());
    variant_ = stream.variant;
}

void Engine::after_failure(int status, const std::vector<Work>& work) {
    // Parts of the batch may have gone into memory.
    for (const Work& part : work) {
        if (!part.stream->is_decoding()) part.stream->outcome.read_tokens -= part.count;
        sequences_->truncate(*part.stream->sequence, part.stream->decoded);
        part.stream->decoded = sequences_->size(*part.stream->sequence);
    }
    if (status == 1) return make_room();
    if (status == 2) {  // broken off, for a more urgent request or because nobody wants it
        if (step_is_overtaken()) ++counters_.overtaken_steps;
        return;
    }
    for (const Work& part : work)
        part.stream->fail(Code::backend_failure,
                          fmt::format("llama_decode failed with {}; llama.cpp's log says why", status));
    drop_ended();
}

/// No cells are left for a batch: remembered prompts go first, then what waits, then the stream that began
/// last.
void Engine::make_room() {
    ++counters_.evictions;
    if (sequences_->evict_one()) return;
    for (auto& [id, stream] : streams_) {
        if (!stream->sequence || stream->running) continue;
        sequences_->release(*stream->sequence, false);
        stream->sequence.reset();
        stream->decoded = 0;
        return;
    }
    Stream* youngest = nullptr;
    size_t holders = 0;
    for (auto& [id, stream] : streams_) {
        if (!stream->sequence) continue;
        ++holders;
        if (!youngest || *stream->began > *youngest->began) youngest = stream.get();
    }
    if (holders <= 1) {
        if (youngest) youngest->end(StopReason::context_full, "the context has no room for another token");
        return;
    }
    sequences_->release(*youngest->sequence, false);
    youngest->sequence.reset();
    youngest->decoded = 0;
    ++youngest->outcome.pauses;
    most_active_ = holders - 1;  // until a stream has finished
}

}  // namespace headrace::llm
