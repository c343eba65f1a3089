#pragma once
#include <llama.h>

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Sets what a context for embeddings has beside others; returns the tokens of the longest text.
uint32_t size_for_embeddings(const ContextSettings& settings, uint32_t trained, llama_context_params& params);

/// A vector of each token where tokens are not pooled, or else one of the whole text.
using TextVectors = std::vector<std::vector<float>>;

/// Turns texts into vectors with a model that was made for it. Thread-safe; calls take turns.
class Embedder {
public:
    static Result<std::shared_ptr<Embedder>> start(std::shared_ptr<const Model> model,
                                                   const Settings& settings);

    /// Vectors of size() for each text, several texts in a batch. normalize: see
    /// RequestSettings::embd_normalize; scores of a ranking model and vectors of tokens are left as they are,
    /// as llama-server does. Errors: Code::prompt_too_long with the text's position and number of tokens.
    Result<std::vector<TextVectors>> embed(std::span<const std::string> texts, int normalize);
    int size() const { return size_; }
    /// Whether a text has one vector, and not one for each token.
    bool pools() const { return pooled_; }
    const Model& model() const { return *model_; }
    bool is_lost() const { return model_->is_lost(); }
    int count_tokens(const std::string& text) const;

private:
    struct Free {
        void operator()(llama_context* context) const { llama_free(context); }
    };
    explicit Embedder(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
    Status run(std::span<const Tokens> texts, int normalize, std::vector<TextVectors>& vectors);

    std::shared_ptr<const Model> model_;
    std::unique_ptr<llama_context, Free> context_;
    std::mutex mutex_;
    bool pooled_ = true;
    bool scores_ = false;  // no vectors: of length 1, a score would be 1 or -1
    int size_ = 0;
    size_t longest_ = 0;  // tokens of a text
};

}  // namespace headrace::llm
