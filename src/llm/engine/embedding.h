#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "llm/engine/generation.h"
#include "llm/model/model.h"
#include "llm/settings.h"

namespace headrace::llm {

/// A vector of each token where tokens are not pooled, or else one of the whole text.
using TextVectors = std::vector<std::vector<float>>;

/// What an embedder is asked for: a vector of each text.
struct EmbeddingRequest {
    std::vector<std::string> texts;
    std::vector<Tokens> tokens;  ///< in place of texts
    RequestSettings settings;
    std::string owner;                         ///< requests of one owner take turns with those of others
    Clock::time_point arrival = Clock::now();  ///< from which its timeouts count
};

/// Texts that an embedder works on: their caller waits here and anyone may cancel; the embedder writes.
class Embedding {
public:
    Embedding(std::uint64_t id, std::vector<Tokens> texts, EmbeddingRequest request);

    std::uint64_t id() const { return id_; }
    /// Tokens of all texts.
    std::size_t token_count() const;
    /// Blocks until all texts have vectors. Errors: Code::cancelled, Code::timed_out, those of the embedder.
    Result<std::vector<TextVectors>> wait();
    /// From any thread; whoever waits gets an error at once, and the step that runs is broken off.
    void cancel();

    // For the embedder.
    const EmbeddingRequest& request() const { return request_; }
    const std::vector<Tokens>& texts() const { return texts_; }
    /// Whether nobody wants the vectors any more.
    bool is_over() const { return over_ || Clock::now() >= deadline(); }
    bool has_begun() const { return begun_; }
    void begin();
    /// Adds the vectors of the next texts. True when nothing more is wanted.
    bool add(std::vector<TextVectors> vectors);
    void fail(Error error);

private:
    Clock::time_point deadline() const;

    const std::uint64_t id_;
    const std::vector<Tokens> texts_;
    const EmbeddingRequest request_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> over_ = false, begun_ = false;
    std::vector<TextVectors> vectors_;
    std::optional<Error> error_;
};

}  // namespace headrace::llm
