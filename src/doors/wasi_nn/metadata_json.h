#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "headrace/language_model.h"

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
std::string vectors_json(const std::vector<std::vector<float>>& vectors, bool pools);
std::string vectors_metadata_json(std::int64_t tokens, const std::vector<Warning>& warnings);

/// {"error": {"code": "prompt_too_long", "message": "..."}}
std::string error_json(const Error& error);

/// graphs: by their numbers; whether each gives vectors in place of texts. process: numbers of sessions and
/// of the process.
struct GraphStatistics {
    LanguageModelStatistics numbers;
    bool gives_vectors = false;
};
std::string statistics_json(const std::map<std::uint32_t, GraphStatistics>& graphs, std::size_t contexts,
                            const LanguageModelStatistics& process);

}  // namespace headrace::wasi_nn
