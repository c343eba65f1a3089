#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doors/wasi_nn/guest_tensor.h"
#include "headrace/headrace.h"

namespace headrace::wasi_nn {

/// What a context's outputs are. metadata: JSON with token counts, the reason of the end, times and warnings.
struct Answer {
    std::string text;
    std::string metadata;
};

/// The number of an output that every context has: JSON of what its inputs and outputs are.
inline constexpr std::uint32_t kDescription = UINT32_MAX;

/// What the bytes of an output are. A text may be cut to a buffer's size; tensors may not.
enum class OutputForm : std::uint8_t { text, json, tensor };

/// What a context computes with. inputs, outputs: of a graph of tensors; what ran last says the outputs'
/// shapes, else -1 stands for an extent that is known when the graph runs.
struct ContextInfo {
    bool has_tensors = false;
    bool gives_vectors = false;  ///< of a language model
    std::vector<TensorInfo> inputs, outputs;
};

/// Takes an output where it lies.
using OutputReader = std::function<Result<int>(std::string_view bytes, OutputForm form)>;

/// Numbered inputs and outputs of a graph that was loaded. Thread-safe.
class Context {
public:
    /// The session of a context and its request that ran last since an input, for the log; empty and 0 for
    /// none.
    struct Origin {
        std::string session;
        std::uint64_t request = 0;
    };

    virtual ~Context() = default;
    virtual Status set_input(std::uint32_t index, const GuestTensor& tensor) = 0;
    virtual Status compute() = 0;
    virtual Result<ContextInfo> info() = 0;
    virtual Result<int> read_output(std::uint32_t index, const OutputReader& read) = 0;

    // Answers of language models, whole and piece by piece; ContextTable says what they do.
    virtual Result<std::string> run(std::string_view, std::string_view) { return no_text(); }
    virtual Result<Answer> infer(std::string_view, std::string_view) { return no_text(); }
    virtual Result<std::optional<std::string>> compute_piece() { return no_text(); }
    virtual Result<std::string> last_piece() { return no_text(); }
    virtual Status end_pieces() { return success(); }

    /// Ends what runs.
    virtual void cancel() = 0;
    /// What it computes with was unloaded, and nothing that could end well runs in it.
    virtual bool is_orphan() const = 0;
    /// Whether it keeps a graph's memory, which its end gives back.
    virtual bool holds_tensors() const { return false; }
    /// Its place is free for another.
    virtual void close() = 0;
    virtual Origin origin() { return {}; }

private:
    static Error no_text() {
        return unsupported("a graph of tensors writes no text; set its inputs, then compute and get_output");
    }
};

}  // namespace headrace::wasi_nn
