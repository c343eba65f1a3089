#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "llm/engine/compute_context.h"
#include "llm/engine/draft_model.h"
#include "llm/engine/image_reader.h"
#include "llm/engine/prompt_budget.h"
#include "llm/engine/sequences.h"
#include "llm/engine/statistics.h"
#include "llm/engine/stream.h"
#include "llm/engine/thread_governor.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// An engine's step: the tokens of streams that decode, with drafts, then pieces of prompts, in one
/// llama_batch; run, and read back into the streams. For one loop: build, run, then read_back or take_back.
class BatchBuilder {
public:
    /// context_size: tokens of one stream. What steps do is counted in `counters`. draft_model: none where
    /// drafts come from the stream itself.
    /// images: of the model's images; null where it reads texts alone.
    BatchBuilder(const Model& model, ComputeContext& context, Sequences& sequences, ImageReader* images,
                 std::unique_ptr<DraftModel> draft_model, const EngineSettings& settings, int context_size,
                 EngineStatistics& counters);
    ~BatchBuilder() { llama_batch_free(batch_); }
    BatchBuilder(const BatchBuilder&) = delete;
    BatchBuilder& operator=(const BatchBuilder&) = delete;

    /// Puts together what the streams want to be read; a stream whose context is full may end.
    /// reads_guardedly: prompts in short steps, even when nobody decodes. False when the context has no room
    /// for any of it.
    bool build(const std::vector<Stream*>& active, bool reads_guardedly);
    /// What was built; empty when no stream wants anything.
    const std::vector<BatchPart>& parts() const { return parts_; }
    /// Whether the step that runs may be broken off: doing so while cells move would spoil the memory.
    bool can_be_broken_off() const { return !cells_move_ && !parts_.empty(); }
    /// Whether it reads prompts alone, which can be read again; steps of streams that decode are short.
    bool only_reads() const;
    /// llama_decode's status.
    int run();
    /// After status 0: what was read is remembered, and streams that decode take the tokens that are chosen.
    void read_back();
    /// After another status: the streams are as they were before, less what of the memory was lost.
    void take_back();
    /// A stream has ended.
    void forget(const Stream& stream);
    int threads() const { return thread_governor_.threads(); }

private:
    int make_free(int tokens);
    bool fits_context(Stream& stream);
    bool add_decoding(const std::vector<Stream*>& streams);
    Tokens draft_for(Stream& stream, int most);
    std::vector<Stream*> choose_reading(const std::vector<Stream*>& prompts);
    bool waits_for_another(const Stream& stream, const std::vector<Stream*>& before) const;
    bool add_prompts(std::vector<Stream*> reading, bool reads_guardedly);
    bool add_image(Stream& stream, int decoding);
    int tokens_of_step(bool decoding) const;  ///< of streams that decode, or else of prompts
    void use_adapters(const Stream& stream);
    void score_prompt(const BatchPart& part);
    void take_choices(const BatchPart& part, Clock::time_point now);

    const Model& model_;
    ComputeContext& context_;
    Sequences& sequences_;
    ImageReader* images_;
    std::unique_ptr<DraftModel> draft_model_;
    const EngineSettings& settings_;
    EngineStatistics& counters_;
    const int context_size_, batch_size_, decode_threads_;
    PromptBudget prompt_budget_;
    ThreadGovernor thread_governor_;
    llama_batch batch_;
    std::vector<BatchPart> parts_;
    const ImagePiece* image_ = nullptr;  // that the step reads of, and nothing else
    ComputeContext::Step step_{};
    bool cells_move_ = false;               // in the next step, before its batch
    std::optional<std::uint64_t> variant_;  // what the context's adapters are set for; none: not set yet
};

}  // namespace headrace::llm
