#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "doors/wasi_nn/loaded_graph.h"
#include "headrace/hosted_models.h"

namespace headrace::wasi_nn {

/// Output 1 of an answer: input_tokens, output_tokens, stop_reason, times, warnings ...
std::string metadata_json(const Reply& reply, bool with_tokens);

/// When a piece of an answer was read, and how many tokens there were.
struct PieceTime {
    std::chrono::steady_clock::time_point time;
    std::int64_t tokens;
};
/// The speed from the first piece to one: what timings_per_token asks for.
std::string piece_metadata_json(const PieceTime& first, const PieceTime& now);

/// {"n_embedding": 384, "embedding": [...]}, as guests of WasmEdge expect it; not pooled, the vectors of the
/// tokens are a list of lists, as in llama-server.
std::string vectors_json(const Embeddings& embeddings);
std::string vectors_metadata_json(const Embeddings& embeddings);

/// {"error": {"code": "prompt_too_long", "message": "..."}}
std::string error_json(const Error& error);

/// What output kDescription of a context tells: {"kind": "language_model", "gives_vectors": false}, or
/// {"kind": "graph", "inputs": [{"name": "x", "type": "f32", "shape": [-1, 4]}], "outputs": [...]}, where -1
/// stands for an extent that is known when the graph runs. computed: the outputs' shapes of the latest run.
std::string model_description_json(bool gives_vectors);
std::string graph_description_json(const std::vector<TensorInfo>& inputs,
                                   const std::vector<TensorInfo>& outputs,
                                   const std::vector<std::vector<std::int64_t>>& computed);

/// graphs: those of tensors.
std::string statistics_json(const HostedStatistics& statistics,
                            const std::map<std::uint32_t, std::shared_ptr<LoadedGraph>>& graphs,
                            std::size_t contexts);

}  // namespace headrace::wasi_nn
