#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/engine/compute_context.h"
#include "llm/engine/embedding.h"
#include "llm/engine/loop_thread.h"
#include "llm/engine/queue.h"
#include "llm/engine/statistics.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Turns texts into vectors with a model that was made for it. Thread-safe: one thread computes a batch of
/// one request's texts after the other; requests take turns by priority, fairly and with aging, as in Engine.
class Embedder {
public:
    static Result<std::shared_ptr<Embedder>> start(std::shared_ptr<const Model> model,
                                                   const EngineSettings& settings);
    ~Embedder();
    Embedder(const Embedder&) = delete;
    Embedder& operator=(const Embedder&) = delete;

    /// Vectors of size() for each text. RequestSettings::embd_normalize is not applied to scores of a ranking
    /// model and vectors of tokens, as in llama-server. Errors: Code::prompt_too_long with the text's
    /// position and number of tokens; Code::busy when too many requests wait.
    Result<std::shared_ptr<Embedding>> submit(EmbeddingRequest request);
    /// The same, and waits for them.
    Result<std::vector<TextVectors>> embed(std::vector<std::string> texts, const RequestSettings& settings);
    int size() const { return size_; }
    /// Whether a text has one vector, and not one for each token.
    bool pools() const { return pooled_; }
    /// Tokens of a text at most.
    std::size_t longest() const { return longest_; }
    /// Whether it gives scores in place of vectors.
    bool ranks() const { return scores_; }
    const Model& model() const { return *model_; }
    bool is_lost() const { return model_->is_lost(); }
    EmbedderStatistics statistics() const;

private:
    struct Waiting {
        std::shared_ptr<Embedding> embedding;
        std::size_t done = 0;  ///< texts
    };
    Embedder(std::shared_ptr<const Model> model, const QueueSettings& settings);
    Status make_context(const ContextSettings& settings);
    Result<std::vector<Tokens>> read(std::span<const std::string> texts) const;
    Status check(std::span<const Tokens> texts) const;
    std::chrono::milliseconds pass();
    std::size_t count_waiting() const;
    void drop_ended();
    void account(Waiting& waiting, std::span<const Tokens> texts, Result<std::vector<TextVectors>> vectors);
    std::span<const Tokens> batch_of(const Waiting& waiting) const;
    Result<std::vector<TextVectors>> run(std::span<const Tokens> texts, int normalize);
    Result<std::vector<TextVectors>> vectors_of(std::span<const Tokens> texts, int normalize);
    bool is_step_unwanted() const;

    std::shared_ptr<const Model> model_;
    const int max_waiting_;
    std::unique_ptr<ComputeContext> context_;
    bool pooled_ = true;
    bool scores_ = false;  // no vectors: of length 1, a score would be 1 or -1
    int size_ = 0;
    std::size_t longest_ = 0;  // tokens of a text

    mutable std::mutex mutex_;
    std::map<std::uint64_t, Waiting> waiting_;  // with those that have begun
    Queue queue_;
    std::uint64_t next_id_ = 1;
    EmbedderStatistics statistics_;
    const Embedding* running_ = nullptr;  // written by the thread alone
    LoopThread thread_;
};

}  // namespace headrace::llm
