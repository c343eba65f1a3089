#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "base/result.h"
#include "llm/engine/generation.h"
#include "llm/engine/registry.h"
#include "llm/notes.h"
#include "llm/service/conversation.h"

namespace headrace::llm {

/// The metadata of an answer as JSON: input_tokens, output_tokens, stop_reason, times, warnings ...
std::string metadata_of(const Outcome& outcome, const Prompt& prompt, const Model& model,
                        const RequestSettings& settings, const Notes& notes);

/// When a piece of an answer was read, and how many tokens there were.
struct PieceTime {
    Clock::time_point time;
    int tokens;
};
/// The speed from the first piece to one: what timings_per_token asks for.
std::string piece_metadata(const PieceTime& first, const PieceTime& now);

/// {"n_embedding": 384, "embedding": [...]}, as guests of WasmEdge expect it; not pooled, the vectors of the
/// tokens are a list of lists, as in llama-server.
std::string embedding_json(const TextVectors& vectors, bool pools);
std::string embedding_metadata(int tokens, const Notes& notes);

/// {"error": {"code": "prompt_too_long", "message": "..."}}
std::string error_json(const Error& error);

nlohmann::json graph_statistics(uint32_t id, const std::string& name, const Runner& runner);
nlohmann::json process_statistics();

}  // namespace headrace::llm
