#include "llm/engine/batch_builder.h"

#include <algorithm>
#include <utility>

namespace headrace::llm {
namespace {

constexpr int kMostDrafted = 32;   // tokens of all drafts in a step: more cost as much as they save
constexpr int kMostScored = 128;   // prompt tokens of a step whose logits are kept: a vocabulary each
constexpr int kComputeBound = 16;  // prompt tokens from which on a step waits for cores, and not for memory

}  // namespace

BatchBuilder::BatchBuilder(const Model& model, ComputeContext& context, Sequences& sequences,
                           ImageReader* images, std::unique_ptr<DraftModel> draft_model,
                           const EngineSettings& settings, int context_size, EngineStatistics& counters)
    : model_(model),
      context_(context),
      sequences_(sequences),
      images_(images),
      draft_model_(std::move(draft_model)),
      settings_(settings),
      counters_(counters),
      context_size_(context_size),
      batch_size_(static_cast<int>(llama_n_batch(context.get()))),
      decode_threads_(llama_n_threads(context.get())),
      prompt_budget_(static_cast<double>(settings.queue.step_target_ms), settings.context.n_ubatch),
      thread_governor_(std::max(decode_threads_, llama_n_threads_batch(context.get())),
                       settings.context.adapt_threads, IdleCores()),
      batch_(llama_batch_init(batch_size_, 0, 1)) {}

bool BatchBuilder::build(const std::vector<Stream*>& active, bool reads_guardedly) {
    batch_.n_tokens = 0;
    parts_.clear();
    std::vector<Stream*> decoding, prompts;
    for (Stream* stream : active)
        if (fits_context(*stream)) (stream->is_decoding() ? decoding : prompts).push_back(stream);
    prompts = choose_reading(prompts);
    const auto texts = std::stable_partition(prompts.begin(), prompts.end(),
                                             [](const Stream* stream) { return stream->is_at_image(); });
    const bool has_texts = !decoding.empty() || texts != prompts.end();
    // An image is a step of its own, and texts have every other one.
    const bool was_image = std::exchange(image_, nullptr) != nullptr;
    if (texts != prompts.begin() && !(was_image && has_texts))
        return add_image(*prompts.front(), static_cast<int>(decoding.size()));
    prompts.erase(prompts.begin(), texts);
    return add_decoding(decoding) && add_prompts(std::move(prompts), reads_guardedly);
}

/// Makes room in a stream's context when it is full. False when the stream has ended for that.
bool BatchBuilder::fits_context(Stream& stream) {
    if (std::cmp_less_equal(stream.tokens.size(), context_size_)) return true;
    const RequestSettings& settings = stream.settings();
    if (!settings_.context.context_shift || stream.has_images()) {
        stream.end(StopReason::context_full,
                   fmt::format(
                       "the context of {} tokens is full; {}", context_size_,
                       stream.has_images() ? "one with images is not shifted" : "context_shift would go on"));
        return false;
    }
    const auto most_kept = static_cast<std::size_t>(std::max(0, context_size_ - 4));
    const std::size_t kept = std::min(
        settings.n_keep < 0 ? stream.prompt_size : static_cast<std::size_t>(settings.n_keep), most_kept);
    const std::size_t left = stream.tokens.size() - 1 - kept;
    const std::size_t dropped = std::clamp<std::size_t>(
        settings.n_discard > 0 ? static_cast<std::size_t>(settings.n_discard) : left / 2, 1,
        std::max<std::size_t>(1, left - 1));
    // Keys that are moved have been computed beside what is dropped now: another answer than of what is read
    // again.
    if (!settings_.context.batch_invariant && sequences_.shift(*stream.sequence, kept, dropped))
        cells_move_ = true;
    else
        sequences_.truncate(*stream.sequence, std::min(kept, stream.decoded));  // read what stays again
    stream.tokens.erase(stream.tokens.begin() + static_cast<std::ptrdiff_t>(kept),
                        stream.tokens.begin() + static_cast<std::ptrdiff_t>(kept + dropped));
    stream.decoded = sequences_.size(*stream.sequence);
    stream.prompt_size = std::min(stream.prompt_size, kept);
    stream.drafts.forget();
    ++stream.outcome.shifts;
    return true;
}

/// Forgets remembered prompts until that many tokens fit; returns how many do.
int BatchBuilder::make_free(int tokens) {
    while (std::cmp_less(sequences_.room(), tokens) && sequences_.evict_one()) ++counters_.evictions;
    return static_cast<int>(std::min(sequences_.room(), static_cast<std::size_t>(INT32_MAX)));
}

/// The last token of each, and drafts as far as there is room. False when not even the tokens fit.
bool BatchBuilder::add_decoding(const std::vector<Stream*>& streams) {
    const auto count = static_cast<int>(streams.size());
    const int free = make_free(count);
    if (free < count) return false;
    const int spare = std::min(kMostDrafted, std::min(batch_size_, free) - count) / std::max(1, count);
    for (Stream* stream : streams) {
        const int wanted = stream->settings().n_predict;
        const int left = std::min(
            context_size_ - static_cast<int>(stream->tokens.size()),
            wanted < 0 ? context_size_ : wanted - static_cast<int>(stream->outcome.tokens.size()) - 1);
        Tokens draft = draft_for(*stream, std::min(spare, left));
        const int first = batch_.n_tokens;
        const std::size_t position = stream->position(stream->decoded);
        add_token(batch_, stream->tokens.back(), position, *stream->sequence, true);
        for (std::size_t i = 0; i < draft.size(); ++i)
            add_token(batch_, draft[i], position + 1 + i, *stream->sequence, true);
        parts_.push_back({stream, std::move(draft), first, batch_.n_tokens - first, true});
    }
    return true;
}

/// The draft model's guess when there is one, or else what followed the same tokens before.
Tokens BatchBuilder::draft_for(Stream& stream, int most) {
    if (!model_.memory_is_divisible() || !stream.settings().speculation.enabled || stream.has_images())
        return {};
    const SpeculationSettings& settings = stream.settings().speculation;
    Tokens draft;
    if (!draft_model_)
        draft = stream.drafts.propose(stream.tokens, most);
    else if (const int wanted = stream.drafts.wanted(most); wanted > 0)
        draft = draft_model_->propose(stream.generation->id(), stream.tokens, wanted, settings.p_min);
    return std::cmp_less(draft.size(), settings.n_min) ? Tokens() : draft;
}

/// Prompts whose next tokens are read in this step, less what others have read meanwhile.
std::vector<Stream*> BatchBuilder::choose_reading(const std::vector<Stream*>& prompts) {
    std::vector<Stream*> before, reading;
    for (Stream* stream : prompts) {
        if (stream->shares)
            stream->decoded = static_cast<std::size_t>(sequences_.extend(*stream->sequence, stream->tokens));
        if (stream->outcome.tokens.empty())
            stream->outcome.cached_tokens =
                std::max(stream->outcome.cached_tokens,
                         static_cast<int>(stream->decoded) - stream->outcome.read_tokens);
        // What others have read may bring it to an image that is not there yet: it is kept back from then on.
        const ImagePiece* image = stream->is_at_image() ? stream->image_from(stream->decoded) : nullptr;
        const bool waits = (image && !images_->has(*image)) || waits_for_another(*stream, before);
        if (!waits) reading.push_back(stream);
        before.push_back(stream);
    }
    return reading;
}

/// Whether a stream before it is reading tokens that both have: they will be shared.
bool BatchBuilder::waits_for_another(const Stream& stream, const std::vector<Stream*>& before) const {
    if (!model_.memory_is_divisible() || !stream.shares) return false;
    return std::any_of(before.begin(), before.end(), [&](const Stream* other) {
        if (other->variant != stream.variant || other->decoded < stream.decoded) return false;
        const std::size_t common =
            std::min(common_prefix(other->tokens, stream.tokens), stream.tokens.size() - 1);
        return common > stream.decoded && common > other->decoded;
    });
}

/// As many tokens of prompts as the step has time for. False when there is no room, and nobody decodes.
bool BatchBuilder::add_prompts(std::vector<Stream*> reading, bool reads_guardedly) {
    if (reading.empty()) return true;
    int wanted = 0;
    for (const Stream* stream : reading)
        wanted += static_cast<int>(std::min<std::size_t>(stream->pending_text(), INT16_MAX));
    const int decoding = batch_.n_tokens;
    int budget = std::min(
        {prompt_budget_.tokens(reads_guardedly ? std::max(1, decoding) : decoding), wanted, batch_size_});
    budget = std::min(budget, make_free(decoding + budget) - decoding);
    if (budget <= 0) return !parts_.empty();
    // The shortest first, so that what it leaves of its share goes to the longer ones.
    std::stable_sort(reading.begin(), reading.end(),
                     [](const Stream* a, const Stream* b) { return a->pending_text() < b->pending_text(); });
    int unscored = kMostScored;
    for (std::size_t i = 0; i < reading.size() && budget > 0; ++i) {
        Stream& stream = *reading[i];
        const int share = std::max(1, budget / static_cast<int>(reading.size() - i));
        int count = std::min(share, static_cast<int>(stream.pending_text()));
        if (stream.wants_prompt_probabilities()) {
            count = std::min(count, unscored);
            unscored -= count;
            if (count == 0) continue;
        }
        const bool is_last = std::cmp_equal(count, stream.pending());
        if (stream.outcome.read_tokens == 0) stream.show_progress(Clock::now());
        parts_.push_back({&stream, {}, batch_.n_tokens, count, is_last});
        std::size_t position = stream.position(stream.decoded);
        for (std::size_t at = stream.decoded, end = at + static_cast<std::size_t>(count); at < end; ++at)
            add_token(batch_, stream.tokens[at], position++, *stream.sequence,
                      (is_last && at + 1 == end) || stream.wants_probability_after(at));
        stream.outcome.read_tokens += count;
        budget -= count;
    }
    return true;
}

/// As many of an image's tokens as a step has time for, or all where they attend to each other. False when
/// there is no room.
bool BatchBuilder::add_image(Stream& stream, int decoding) {
    const ImagePiece& image = *stream.image_from(stream.decoded);
    const auto left = static_cast<int>(image.end() - stream.decoded);
    int wanted = image.looks_ahead ? left : std::min({prompt_budget_.tokens(decoding), left, batch_size_});
    const int free = make_free(wanted);
    if (free < (image.looks_ahead ? wanted : 1)) return false;
    wanted = std::min(wanted, free);
    if (stream.outcome.read_tokens == 0) stream.show_progress(Clock::now());
    image_ = &image;
    parts_.push_back({&stream, {}, 0, wanted, false});
    stream.outcome.read_tokens += wanted;
    return true;
}

bool BatchBuilder::only_reads() const {
    return std::none_of(parts_.begin(), parts_.end(),
                        [](const BatchPart& part) { return part.stream->is_decoding(); });
}

int BatchBuilder::tokens_of_step(bool decoding) const {
    int tokens = 0;
    for (const BatchPart& part : parts_)
        if (part.stream->is_decoding() == decoding) tokens += part.count;
    return tokens;
}

int BatchBuilder::run() {
    use_adapters(*parts_.front().stream);
    if (tokens_of_step(false) >= kComputeBound) thread_governor_.expect_prompt();
    const int threads = thread_governor_.threads();
    llama_set_n_threads(context_.get(), std::min(threads, decode_threads_), threads);
    if (image_) {
        const BatchPart& part = parts_.front();
        const Stream& stream = *part.stream;
        step_ = context_.compute_image({.piece = image_,
                                        .rows = images_->rows(*image_),
                                        .first = stream.decoded - image_->begin,
                                        .count = static_cast<std::size_t>(part.count),
                                        .position = stream.position(image_->begin),
                                        .sequence = *stream.sequence});
    } else {
        step_ = context_.compute(batch_);
    }
    cells_move_ = false;
    return step_.status;
}

void BatchBuilder::use_adapters(const Stream& stream) {
    if (stream.variant == variant_ || model_.adapters().empty()) return;
    std::vector<llama_adapter_lora*> adapters = model_.adapters();
    std::vector<float> scales;
    for (const auto& [path, scale] : settings_.model.lora) scales.push_back(scale);
    if (!stream.settings().lora.empty()) std::fill(scales.begin(), scales.end(), 0.0f);
    for (const auto& [index, scale] : stream.settings().lora) scales[static_cast<std::size_t>(index)] = scale;
    llama_set_adapters_lora(context_.get(), adapters.data(), adapters.size(), scales.data());
    variant_ = stream.variant;
}

void BatchBuilder::read_back() {
    const int prompt = tokens_of_step(false), decoding = tokens_of_step(true);
    prompt_budget_.observe(decoding, prompt, step_.wall_ms);
    thread_governor_.observe(step_.wall_ms, step_.running_ms);
    ++counters_.steps;
    counters_.prompt_tokens += static_cast<std::uint64_t>(prompt);
    if (prompt) counters_.prompt_ms += step_.wall_ms;
    if (decoding) counters_.decode_ms += step_.wall_ms;
    counters_.stream_steps += parts_.size();
    counters_.step_ms_longest = std::max(counters_.step_ms_longest, step_.wall_ms);
    const Clock::time_point now = Clock::now();
    for (const BatchPart& part : parts_) {
        Stream& stream = *part.stream;
        const std::size_t read = static_cast<std::size_t>(part.count) - part.draft.size();
        if (stream.wants_prompt_probabilities()) score_prompt(part);
        sequences_.append(*stream.sequence, stream.tokens.data() + stream.decoded, read);
        stream.decoded += read;
        counters_.longest_stream = std::max(counters_.longest_stream, stream.decoded);
        if (part.draft.empty()) stream.show_progress(now);
        if (!part.has_output || stream.has_ended()) continue;
        if (stream.settings().n_predict == 0)
            stream.end(StopReason::token_limit);
        else
            take_choices(part, now);
    }
}

/// The probabilities of the prompt's tokens that come after those of the part.
void BatchBuilder::score_prompt(const BatchPart& part) {
    Stream& stream = *part.stream;
    for (int i = 0; i < part.count; ++i) {
        const std::size_t at = stream.decoded + static_cast<std::size_t>(i);
        if (!stream.wants_probability_after(at)) continue;
        const Result<Sampler::Choice> expected =
            stream.sampler.expected(context_.get(), part.first + i, stream.tokens[at + 1]);
        if (!expected.ok()) return stream.fail(expected.error());
        stream.take_prompt(expected.value());
    }
}

/// The next token of a stream, and as many of its draft as the model agrees with.
void BatchBuilder::take_choices(const BatchPart& part, Clock::time_point now) {
    Stream& stream = *part.stream;
    const auto drafted = static_cast<int>(part.draft.size());
    std::vector<int> indices;
    for (int i = 0; i <= drafted; ++i) indices.push_back(part.first + part.count - 1 - drafted + i);
    Result<std::vector<Sampler::Choice>> chosen = stream.sampler.sample(context_.get(), indices, part.draft);
    if (!chosen.ok()) return stream.fail(chosen.error());
    const std::size_t known = stream.tokens.size();
    for (const Sampler::Choice& choice : chosen.value()) {
        ++counters_.generated_tokens;
        if (stream.take(choice, model_, now)) break;
    }
    if (part.draft.empty()) return;
    // The last token chosen was not in the batch; of the draft stays what was chosen before it.
    const std::size_t accepted = stream.tokens.size() - known - 1;
    sequences_.append(*stream.sequence, stream.tokens.data() + stream.decoded, accepted);
    stream.decoded += accepted;
    sequences_.truncate(*stream.sequence, stream.decoded);
    ++counters_.drafts;
    if (counters_.accepted_at.size() < accepted) counters_.accepted_at.resize(accepted);
    for (std::size_t place = 0; place < accepted; ++place) ++counters_.accepted_at[place];
    stream.outcome.drafted += drafted;
    stream.outcome.accepted += static_cast<int>(accepted);
    stream.drafts.judge(drafted, static_cast<int>(accepted));
}

void BatchBuilder::take_back() {
    // Parts of the batch may have gone into memory.
    for (const BatchPart& part : parts_) {
        Stream& stream = *part.stream;
        if (!stream.is_decoding()) stream.outcome.read_tokens -= part.count;
        sequences_.truncate(*stream.sequence, stream.decoded);
        stream.decoded = sequences_.size(*stream.sequence);
    }
}

void BatchBuilder::forget(const Stream& stream) {
    if (draft_model_) draft_model_->forget(stream.generation->id());
}

}  // namespace headrace::llm
