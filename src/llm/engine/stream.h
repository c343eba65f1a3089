#pragma once
#include <memory>
#include <optional>

#include "base/log.h"
#include "llm/engine/drafts.h"
#include "llm/engine/generation.h"
#include "llm/engine/sampler.h"
#include "llm/engine/sequences.h"

namespace headrace::llm {

/// A generation while an engine works on it. Only the engine's loop touches it after it was made.
struct Stream {
    /// context_size: tokens of prompt and answer together.
    static Result<std::unique_ptr<Stream>> create(const Model& model, std::shared_ptr<Generation> generation,
                                                  int context_size);

    /// The tokens that the model has not read.
    std::size_t pending() const { return tokens.size() - decoded; }
    bool is_decoding() const { return sequence && pending() == 1 && tokens.size() > prompt_size; }
    /// The image that the token with that index belongs to, or else the next one behind it; null: none.
    const ImagePiece* image_from(std::size_t index) const;
    bool has_images() const { return !generation->request().images.empty(); }
    /// Whether an image comes next, in part or whole.
    bool is_at_image() const { return pending() > 0 && is_image_token(tokens[decoded]); }
    /// Tokens of text that come next.
    std::size_t pending_text() const;
    /// Where in the model's memory the token with that index is.
    std::size_t position(std::size_t index) const {
        return has_images() ? position_of(tokens, index) : index;
    }
    /// Whether what the model says after the token with that index is wanted as the next one's probability.
    bool wants_probability_after(std::size_t index) const {
        return settings().prompt_probs && index + 1 < prompt_size &&
               index >= outcome.prompt_token_probabilities.size();
    }
    bool wants_prompt_probabilities() const {
        return wants_probability_after(outcome.prompt_token_probabilities.size());
    }
    bool has_ended() const { return outcome.reason != StopReason::none; }
    const RequestSettings& settings() const { return generation->request().settings; }
    LogContext log_context() const { return {generation->request().session, generation->id()}; }

    /// Takes a token that was chosen: its text goes to the caller. True when the generation is over.
    bool take(const Sampler::Choice& choice, const Model& model, Clock::time_point now);
    /// The next token of the prompt, as the model expected it.
    void take_prompt(const Sampler::Choice& expected);
    void end(StopReason reason, std::string detail = {});
    void fail(const Error& error);
    /// Tells the caller how much of the prompt was read, if that is wanted.
    void show_progress(Clock::time_point now);
    /// Hands the outcome to the caller.
    void deliver(Clock::time_point now);

    std::shared_ptr<Generation> generation;
    Tokens tokens;  ///< the prompt, and what was generated
    std::size_t prompt_size = 0;
    std::optional<Sequences::Id> sequence;
    std::size_t decoded = 0;  ///< of tokens: in the sequence's memory
    std::uint64_t variant = 0;
    Sampler sampler;
    StopConditions stops;
    Drafts drafts;
    Outcome outcome;
    std::optional<Clock::time_point> began, first_token;
    bool shares = true;       ///< takes what other sequences have read
    bool is_fetched = false;  ///< what is stored of the prompt is in its sequence, or will not be
    bool running = false;     ///< in the last step's batch

private:
    Stream(std::shared_ptr<Generation> shared, Sampler chooser, StopConditions conditions);
    /// text_tokens: of the generated ones, those that the text so far is of.
    void show(const std::string& text, std::size_t text_tokens);
    std::size_t shown_ = 0;                 // tokens whose text the caller has, or will never have
    std::vector<std::size_t> begins_ = {};  // where in the text those begin that were generated since
    void note_probabilities(const Sampler::Choice& choice);
};

/// A stream's part of a batch.
struct BatchPart {
    Stream* stream;
    Tokens draft;
    int first, count;  ///< entries of the batch, with the draft's
    bool has_output;   ///< its end is sampled
};

}  // namespace headrace::llm
