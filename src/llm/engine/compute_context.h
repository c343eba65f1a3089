#pragma once
#include <llama-cpp.h>

#include <functional>
#include <memory>

#include "base/result.h"
#include "llm/engine/invariance.h"
#include "llm/model/model.h"

struct ggml_threadpool;

namespace headrace::llm {

/// A model's llama.cpp context with threads of its own, whose steps can be broken off.
class ComputeContext {
public:
    /// is_unwanted: asked between two nodes of a step, on the thread that computes it: true when nobody wants
    /// its result any more. is_invariant: see Invariance. Errors: the context's memory is missing, a lost
    /// host, a model that is not covered.
    static Result<std::unique_ptr<ComputeContext>> create(const Model& model,
                                                          const llama_context_params& params,
                                                          std::function<bool()> is_unwanted,
                                                          bool is_invariant = false);
    ~ComputeContext();
    ComputeContext(const ComputeContext&) = delete;
    ComputeContext& operator=(const ComputeContext&) = delete;

    llama_context* get() const { return context_.get(); }

    struct Step {
        int status;         ///< llama_decode's: 0 done, 1 no room in the memory, 2 broken off
        double wall_ms;     ///< from the turn to compute on
        double running_ms;  ///< of all this process's threads
    };
    /// Computes a batch, in turn with others that use the same processor. Throws what llama.cpp throws where
    /// memory ends.
    Step compute(const llama_batch& batch);
    /// Some rows of an image's embeddings.
    struct ImageRows {
        const ImagePiece* piece;
        const std::vector<float>& rows;  ///< all of them
        std::size_t first, count;
        std::size_t position;  ///< of the piece's first token
        llama_seq_id sequence;
    };
    /// The same of an image, which is no part of a batch of tokens. The model must have a projector.
    Step compute_image(const ImageRows& image);
    /// An error when a step had something whose result may depend on what else was in it, though it must not.
    Status check_invariance() const { return invariance_ ? invariance_->check() : success(); }

private:
    ComputeContext(const Model& model, std::function<bool()> is_unwanted);
    void attach_threads(int threads);
    Step run(const std::function<int()>& decode);
    Status try_invariance();
    static bool abort_step(void* self);

    const Model& model_;
    std::function<bool()> is_unwanted_;
    bool encodes_;                            // the model has no decoder
    std::unique_ptr<Invariance> invariance_;  // null: results may depend on the batch
    llama_context_ptr context_;
    ggml_threadpool* threadpool_ = nullptr;
};

/// Adds a token to a batch with room for it. has_output: its logits or embedding are read.
void add_token(llama_batch& batch, llama_token token, std::size_t position, llama_seq_id sequence,
               bool has_output);

}  // namespace headrace::llm
