#include "llm/engine/stream.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/hash_step.h"

namespace headrace::llm {
namespace {

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

/// Memory that was computed with other adapters is other memory.
std::uint64_t variant_of(const RequestSettings& settings) {
    std::uint64_t hash = 0;
    for (const auto& [index, scale] : settings.lora) {
        hash = hash_step(hash, static_cast<std::uint64_t>(index) + 1);
        hash = hash_step(hash, std::bit_cast<std::uint32_t>(scale));
    }
    return hash;
}

std::vector<TokenProbability> likeliest_of(const Sampler::Choice& choice) {
    std::vector<TokenProbability> row;
    for (const llama_token_data& entry : choice.likeliest)
        row.push_back({.token = entry.id, .probability = entry.p});
    return row;
}

}  // namespace

Stream::Stream(std::shared_ptr<Generation> shared, Sampler chooser, StopConditions conditions)
    : generation(std::move(shared)),
      tokens(generation->request().prompt),
      prompt_size(tokens.size()),
      variant(variant_of(settings())),
      sampler(std::move(chooser)),
      stops(std::move(conditions)),
      drafts(settings().speculation) {
    outcome.prompt_tokens = static_cast<int>(prompt_size);
}

Result<std::unique_ptr<Stream>> Stream::create(const Model& model, std::shared_ptr<Generation> generation,
                                               int context_size) {
    const GenerationRequest& request = generation->request();
    if (request.settings.prompt_probs && !request.images.empty())
        return invalid("prompt_probs: a prompt with images has none; leave it out")
            .of_parameter("prompt_probs");
    const int left = context_size - static_cast<int>(request.prompt.size());
    const int most = request.settings.n_predict < 0 ? left : std::min(left, request.settings.n_predict);
    HR_ASSIGN(Sampler sampler, Sampler::create(model, request.settings, request.prompt));
    HR_ASSIGN(StopConditions stops, StopConditions::create(request.settings.stopping, most));
    return std::unique_ptr<Stream>(new Stream(std::move(generation), std::move(sampler), std::move(stops)));
}

const ImagePiece* Stream::image_from(std::size_t index) const {
    for (const ImagePiece& piece : generation->request().images)
        if (index < piece.end()) return &piece;
    return nullptr;
}

std::size_t Stream::pending_text() const {
    const ImagePiece* image = image_from(decoded);
    return image ? image->begin - std::min(decoded, image->begin) : pending();
}

bool Stream::take(const Sampler::Choice& choice, const Model& model, Clock::time_point now) {
    if (!first_token) first_token = now;
    const llama_token token = choice.token;
    note_probabilities(choice);
    tokens.push_back(token);
    outcome.tokens.push_back(token);
    if (model.ends_answer(token)) {
        end(StopReason::end_of_answer);
        return true;
    }
    const bool special = generation->request().add_special_pieces || sampler.preserves(token);
    begins_.push_back(stops.length());
    StopConditions::Step step = stops.feed(token, model.piece(token, special), now);
    // Others are of text that is held back, or was taken off the end as a stop string's is.
    const auto beyond = std::lower_bound(begins_.begin(), begins_.end(), stops.shown_length());
    show(step.text, shown_ + static_cast<std::size_t>(beyond - begins_.begin()));
    if (step.reason != StopReason::none) {
        outcome.reason = step.reason;
        outcome.detail = std::move(step.detail);
    } else if (settings().n_predict >= 0 &&
               std::cmp_greater_equal(outcome.tokens.size(), settings().n_predict)) {
        end(StopReason::token_limit);
    }
    return has_ended();
}

void Stream::show(const std::string& text, std::size_t text_tokens) {
    outcome.text += text;
    outcome.text_tokens = text_tokens;
    if (text.empty()) return;
    begins_.erase(begins_.begin(), begins_.begin() + static_cast<std::ptrdiff_t>(
                                                         std::min(begins_.size(), text_tokens - shown_)));
    headrace::Piece piece{.text = text, .tokens = static_cast<std::int64_t>(outcome.tokens.size())};
    const auto from = static_cast<std::ptrdiff_t>(std::exchange(shown_, text_tokens));
    const auto to = static_cast<std::ptrdiff_t>(text_tokens);
    piece.new_tokens.assign(outcome.tokens.begin() + from, outcome.tokens.begin() + to);
    if (!outcome.probabilities.empty()) {
        piece.probabilities.assign(outcome.probabilities.begin() + from, outcome.probabilities.begin() + to);
        piece.token_probabilities.assign(outcome.token_probabilities.begin() + from,
                                         outcome.token_probabilities.begin() + to);
    }
    generation->push(std::move(piece));
}

void Stream::show_progress(Clock::time_point now) {
    if (!settings().return_progress || !outcome.tokens.empty()) return;
    generation->push({.progress = PromptProgress{.total = outcome.prompt_tokens,
                                                 .cached = outcome.cached_tokens,
                                                 .processed = static_cast<std::int64_t>(decoded),
                                                 .ms = milliseconds(now - began.value_or(now))}});
}

void Stream::note_probabilities(const Sampler::Choice& choice) {
    if (settings().sampling.n_probs <= 0) return;
    outcome.probabilities.push_back(likeliest_of(choice));
    outcome.token_probabilities.push_back(choice.probability);
}

void Stream::take_prompt(const Sampler::Choice& expected) {
    outcome.prompt_probabilities.push_back(likeliest_of(expected));
    outcome.prompt_token_probabilities.push_back(expected.probability);
}

void Stream::end(StopReason reason, std::string detail) {
    outcome.reason = reason;
    outcome.detail = std::move(detail);
    // The token that ends the answer has no text.
    show(stops.finish(), outcome.tokens.size() - (reason == StopReason::end_of_answer ? 1 : 0));
}

void Stream::fail(const Error& error) {
    outcome.code = error.code;
    outcome.parameter = error.parameter;
    end(error.code == Code::cancelled   ? StopReason::cancelled
        : error.code == Code::timed_out ? StopReason::timed_out
                                        : StopReason::failed,
        error.message);
}

void Stream::deliver(Clock::time_point now) {
    const Clock::time_point start = began.value_or(now), first = first_token.value_or(now);
    outcome.queued_ms = milliseconds(start - generation->arrival());
    outcome.prompt_ms = milliseconds(first - start);
    outcome.generate_ms = milliseconds(now - first);
    generation->finish(std::move(outcome));
}

}  // namespace headrace::llm
