#include "llm/service/reply.h"

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/machine_memory.h"

namespace headrace::llm {
namespace {

using nlohmann::json;

/// Text of a model may end inside a character: that byte is replaced.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json notes_json(const Notes& notes) {
    json list = json::array();
    for (const Note& note : notes) list.push_back({{"parameter", note.parameter}, {"message", note.message}});
    return list;
}

json probabilities_json(const Outcome& outcome, const Model& model) {
    json rows = json::array();
    for (const auto& row : outcome.probabilities) {
        json list = json::array();
        for (const TokenProbability& entry : row)
            list.push_back({{"token", entry.token},
                            {"text", model.piece(entry.token, true)},
                            {"probability", entry.probability}});
        rows.push_back(std::move(list));
    }
    return rows;
}

std::string_view name_of(Code code) {
    switch (code) {
        case Code::invalid_argument: return "invalid_argument";
        case Code::unsupported: return "unsupported";
        case Code::out_of_memory: return "out_of_memory";
        case Code::invalid_state: return "invalid_state";
        case Code::io: return "io";
        case Code::backend_failure: return "backend_failure";
        case Code::not_found: return "not_found";
        case Code::denied: return "denied";
        case Code::busy: return "busy";
        case Code::timed_out: return "timed_out";
        case Code::cancelled: return "cancelled";
        case Code::prompt_too_long: return "prompt_too_long";
        case Code::context_full: return "context_full";
    }
    return "unknown";
}

/// What of the answer is no plain content.
void add_answer(const Answer& answer, json& metadata) {
    if (!answer.reasoning.empty()) metadata["reasoning"] = answer.reasoning;
    for (const ToolCall& call : answer.calls) {
        const json arguments = json::parse(call.arguments, nullptr, false);
        metadata["tool_calls"].push_back(
            {{"name", call.name},
             {"arguments", arguments.is_discarded() ? json(call.arguments) : arguments}});
    }
}

double per_second(size_t count, double ms) { return ms > 0 ? static_cast<double>(count) * 1000.0 / ms : 0.0; }

size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    size_t total = 0, resident = 0;
    file >> total >> resident;
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

std::string metadata_of(const Outcome& outcome, const Prompt& prompt, const Model& model,
                        const RequestSettings& settings, const Notes& notes) {
    json metadata = {
        {"input_tokens", outcome.prompt_tokens},
        {"output_tokens", outcome.tokens.size()},
        {"cached_tokens", outcome.cached_tokens},
        {"stop_reason", to_string(outcome.reason)},
        {"model", model.description()},
        {"timings",
         {{"queued_ms", outcome.queued_ms},
          {"prompt_ms", outcome.prompt_ms},
          {"generate_ms", outcome.generate_ms},
          {"prompt_per_second",
           per_second(static_cast<size_t>(outcome.prompt_tokens - outcome.cached_tokens), outcome.prompt_ms)},
          {"generated_per_second",
           per_second(outcome.tokens.empty() ? 0 : outcome.tokens.size() - 1, outcome.generate_ms)}}},
    };
    if (!outcome.detail.empty()) metadata["stop_detail"] = outcome.detail;
    if (outcome.drafted)
        metadata["speculation"] = {{"drafted", outcome.drafted}, {"accepted", outcome.accepted}};
    if (outcome.pauses) metadata["pauses"] = outcome.pauses;
    if (outcome.shifts) metadata["context_shifts"] = outcome.shifts;
    if (prompt.dropped) metadata["dropped_messages"] = prompt.dropped;
    if (settings.return_tokens) metadata["tokens"] = outcome.tokens;
    if (!outcome.probabilities.empty()) metadata["probabilities"] = probabilities_json(outcome, model);
    if (prompt.chat) add_answer(parse_answer(prompt, outcome.text, settings), metadata);
    if (!notes.empty()) metadata["warnings"] = notes_json(notes);
    return dump(metadata);
}

std::string piece_metadata(const PieceTime& first, const PieceTime& now) {
    const double ms = std::chrono::duration<double, std::milli>(now.time - first.time).count();
    const auto tokens = static_cast<size_t>(now.tokens - first.tokens);
    return dump({{"output_tokens", now.tokens},
                 {"timings", {{"generate_ms", ms}, {"generated_per_second", per_second(tokens, ms)}}}});
}

std::string embedding_json(const TextVectors& vectors, bool pools) {
    json embedding = pools ? json(vectors.front()) : json(vectors);
    return dump({{"n_embedding", vectors.front().size()}, {"embedding", std::move(embedding)}});
}

std::string embedding_metadata(int tokens, const Notes& notes) {
    json metadata = {{"input_tokens", tokens}, {"output_tokens", 0}};
    if (!notes.empty()) metadata["warnings"] = notes_json(notes);
    return dump(metadata);
}

std::string error_json(const Error& error) {
    return dump({{"error", {{"code", name_of(error.code)}, {"message", error.message}}}});
}

json graph_statistics(uint32_t id, const std::string& name, const Runner& runner) {
    json graph = {{"id", id},
                  {"name", name},
                  {"model", runner.model().description()},
                  {"weight_bytes", llama_model_size(runner.model().get())}};
    if (!runner.engine) {
        const EmbedderStatistics s = runner.embedder->statistics();
        graph["requests"] = {{"submitted", s.requests}, {"finished", s.finished}, {"failed", s.failed},
                             {"rejected", s.rejected},  {"waiting", s.waiting},   {"running", s.running}};
        graph["tokens"] = {{"prompt", s.tokens}};
        graph["steps"] = {{"count", s.steps}, {"broken_off", s.broken_off}};
        return graph;
    }
    const EngineStatistics s = runner.engine->statistics();
    graph["requests"] = {{"submitted", s.requests},  {"finished", s.finished}, {"failed", s.failed},
                         {"cancelled", s.cancelled}, {"rejected", s.rejected}, {"waiting", s.waiting},
                         {"running", s.running}};
    graph["tokens"] = {{"prompt", s.prompt_tokens},
                       {"cached", s.cached_tokens},
                       {"generated", s.generated_tokens},
                       {"drafted", s.drafted},
                       {"accepted", s.accepted}};
    graph["steps"] = {{"count", s.steps},
                      {"longest_ms", s.step_ms_longest},
                      {"threads", s.threads},
                      {"pauses", s.pauses},
                      {"overtaken", s.overtaken_steps}};
    graph["cache"] = {{"sequences", s.remembered_sequences}, {"tokens", s.remembered_tokens},
                      {"ram_bytes", s.ram_cache_bytes},      {"evictions", s.evictions},
                      {"context_shifts", s.shifts},          {"context_tokens", s.context_tokens}};
    return graph;
}

json process_statistics() {
    const RegistryStatistics registry = registry_statistics();
    return {{"models", registry.models},
            {"engines", registry.engines},
            {"resident_bytes", resident_bytes()},
            {"memory_share_in_use", memory_share_in_use()}};
}

}  // namespace headrace::llm
