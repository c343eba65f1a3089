#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <llama.h>

#include "base/result.h"
#include "llm/images/image_tokens.h"
#include "llm/settings.h"

struct mtmd_input_chunk;

namespace headrace::llm {

/// An image in a prompt, or one of the pieces that a large one is cut into.
struct ImagePiece {
    std::size_t begin = 0, count = 0;  ///< of the prompt's tokens
    std::string id;                    ///< of what it shows: pieces with equal ones have equal embeddings
    bool looks_ahead = false;          ///< its tokens attend to each other in both directions
    std::shared_ptr<const mtmd_input_chunk> chunk;

    std::size_t end() const { return begin + count; }
};

struct ImagePrompt {
    Tokens tokens;
    std::vector<ImagePiece> pieces;  ///< in their order
};

/// What reads images for a language model: llama.cpp's mtmd with a file of weights of its own (mmproj).
/// Everything may be called from any thread; embeddings are computed one piece after the other.
class Projector {
public:
    /// Errors: what is wrong with the file; one of another model, or for sounds alone; this build reads no
    /// images.
    static Result<std::unique_ptr<Projector>> load(const ModelSettings& settings, const llama_model* model);
    ~Projector();
    Projector(const Projector&) = delete;
    Projector& operator=(const Projector&) = delete;

    /// Stands in a text where an image is to be. No text of a user has it.
    static const std::string& marker();
    /// The tokens of a text with as many marks as images, in their order. Errors: another number of marks; an
    /// image that is damaged or too large, under its name.
    Result<ImagePrompt> tokenize(std::string_view text, const std::vector<const Image*>& images) const;
    /// Computes a piece's embeddings, a row for each of its tokens. goes_on is asked now and then, while
    /// nothing is computed: false ends it with Code::cancelled.
    Result<std::vector<float>> encode(const ImagePiece& piece, const std::function<bool()>& goes_on) const;
    /// Puts some rows of a piece into a batch. position: of the piece's first token.
    void add_rows(llama_batch_ext* batch, const ImagePiece& piece, const std::vector<float>& rows,
                  std::size_t first, std::size_t count, std::size_t position, llama_seq_id sequence) const;
    /// The size of its file.
    std::size_t bytes() const;
    /// Bytes that it takes once it is loaded: weights and compute buffers, as llama.cpp lays them out without
    /// allocating them. At least the file's size; 0 where there is no such file. One call at a time, and no
    /// load beside it: it changes mtmd's global logger.
    static std::uint64_t needed_bytes(const ModelSettings& settings);

private:
    struct Impl;
    explicit Projector(std::unique_ptr<Impl> impl);
    Status add_chunk(ImagePrompt& prompt, const mtmd_input_chunk* chunk) const;
    std::unique_ptr<Impl> impl_;
};

/// Whether this build reads images.
bool has_projectors();

}  // namespace headrace::llm
