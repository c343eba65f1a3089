#include "doors/wasi_nn/metadata_json.h"

#include <nlohmann/json.hpp>

namespace headrace::wasi_nn {
namespace {

using nlohmann::json;

/// Text of a model may end inside a character: that byte is replaced.
std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json warnings_of(const std::vector<Warning>& warnings) {
    json list = json::array();
    for (const Warning& warning : warnings)
        list.push_back({{"parameter", warning.parameter}, {"message", warning.message}});
    return list;
}

json probabilities_of(const std::vector<std::vector<TokenProbability>>& tokens) {
    json rows = json::array();
    for (const auto& row : tokens) {
        json list = json::array();
        for (const TokenProbability& entry : row)
            list.push_back(
                {{"token", entry.token}, {"text", entry.text}, {"probability", entry.probability}});
        rows.push_back(std::move(list));
    }
    return rows;
}

json tool_calls_of(const Reply& reply) {
    json list = json::array();
    for (const ToolCall& call : reply.tool_calls) {
        const json arguments = json::parse(call.arguments, nullptr, false);
        list.push_back({{"name", call.name},
                        {"arguments", arguments.is_discarded() ? json(call.arguments) : arguments}});
    }
    return list;
}

json graph_of(std::uint32_t id, const HostedModelStatistics& graph) {
    const LanguageModelStatistics& s = graph.numbers;
    json made = {{"id", id}, {"name", s.name}, {"model", s.description}, {"weight_bytes", s.weight_bytes}};
    made["requests"] = {{"submitted", s.submitted}, {"finished", s.finished}, {"failed", s.failed},
                        {"rejected", s.rejected},   {"waiting", s.waiting},   {"running", s.running}};
    made["tokens"] = {{"prompt", s.prompt_tokens}};
    made["steps"] = {{"count", s.steps}};
    if (graph.gives_vectors) {
        made["steps"]["broken_off"] = s.broken_off_steps;
        return made;
    }
    made["requests"]["cancelled"] = s.cancelled;
    made["tokens"].update({{"cached", s.cached_tokens},
                           {"generated", s.generated_tokens},
                           {"drafted", s.drafted_tokens},
                           {"accepted", s.accepted_tokens}});
    made["steps"].update({{"longest_ms", s.longest_step_ms},
                          {"threads", s.threads},
                          {"pauses", s.pauses},
                          {"overtaken", s.overtaken_steps}});
    made["cache"] = {{"sequences", s.remembered_sequences}, {"tokens", s.remembered_tokens},
                     {"ram_bytes", s.ram_cache_bytes},      {"evictions", s.evictions},
                     {"context_shifts", s.context_shifts},  {"context_tokens", s.context_tokens},
                     {"disk_bytes", s.disk_cache_bytes},    {"disk_tokens", s.disk_cached_tokens},
                     {"disk_failures", s.disk_failures}};
    return made;
}

json tensor_graph_of(std::uint32_t id, const LoadedGraph& graph) {
    const CompileStats stats = graph.executable.stats();
    return {{"id", id},
            {"name", graph.name},
            {"weight_bytes", stats.constant_bytes + stats.packed_bytes},
            {"tensor_bytes", graph.executable.buffers().stats().live_bytes},
            {"runs", graph.runs.load()}};
}

json tensors_of(const std::vector<TensorInfo>& tensors) {
    json list = json::array();
    for (const TensorInfo& tensor : tensors)
        list.push_back({{"name", tensor.name}, {"type", name_of(tensor.dtype)}, {"shape", tensor.shape}});
    return list;
}

}  // namespace

std::string model_description_json(bool gives_vectors) {
    return dump({{"kind", "language_model"}, {"gives_vectors", gives_vectors}});
}

std::string graph_description_json(const std::vector<TensorInfo>& inputs,
                                   const std::vector<TensorInfo>& outputs,
                                   const std::vector<std::vector<std::int64_t>>& computed) {
    json described = {{"kind", "graph"}, {"inputs", tensors_of(inputs)}, {"outputs", tensors_of(outputs)}};
    for (std::size_t i = 0; i < computed.size(); ++i) described["outputs"][i]["computed"] = computed[i];
    return dump(described);
}

std::string metadata_json(const Reply& reply, bool with_tokens) {
    json metadata = {
        {"input_tokens", reply.prompt_tokens},
        {"output_tokens", reply.generated_tokens},
        {"cached_tokens", reply.cached_tokens},
        {"stop_reason", to_string(reply.stop_reason)},
        {"model", reply.model},
        {"timings",
         {{"queued_ms", reply.timings.queued_ms},
          {"prompt_ms", reply.timings.prompt_ms},
          {"generate_ms", reply.timings.generate_ms},
          {"prompt_per_second", reply.timings.prompt_per_second},
          {"generated_per_second", reply.timings.generated_per_second}}},
    };
    if (!reply.stop_detail.empty()) metadata["stop_detail"] = reply.stop_detail;
    if (reply.drafted_tokens)
        metadata["speculation"] = {{"drafted", reply.drafted_tokens}, {"accepted", reply.accepted_tokens}};
    if (reply.pauses) metadata["pauses"] = reply.pauses;
    if (reply.context_shifts) metadata["context_shifts"] = reply.context_shifts;
    if (reply.dropped_messages) metadata["dropped_messages"] = reply.dropped_messages;
    if (with_tokens) metadata["tokens"] = reply.tokens;
    if (!reply.probabilities.empty()) metadata["probabilities"] = probabilities_of(reply.probabilities);
    if (!reply.prompt_token_probabilities.empty()) {
        metadata["prompt_probabilities"] = probabilities_of(reply.prompt_probabilities);
        metadata["prompt_token_probabilities"] = reply.prompt_token_probabilities;
    }
    if (!reply.reasoning.empty()) metadata["reasoning"] = reply.reasoning;
    if (!reply.tool_calls.empty()) metadata["tool_calls"] = tool_calls_of(reply);
    if (!reply.warnings.empty()) metadata["warnings"] = warnings_of(reply.warnings);
    return dump(metadata);
}

std::string piece_metadata_json(const PieceTime& first, const PieceTime& now) {
    const double ms = std::chrono::duration<double, std::milli>(now.time - first.time).count();
    const auto tokens = static_cast<double>(now.tokens - first.tokens);
    return dump(
        {{"output_tokens", now.tokens},
         {"timings", {{"generate_ms", ms}, {"generated_per_second", ms > 0 ? tokens * 1000.0 / ms : 0.0}}}});
}

std::string vectors_json(const Embeddings& embeddings) {
    const std::vector<std::vector<float>>& vectors = embeddings.vectors;
    json embedding = embeddings.of_tokens ? json(vectors) : json(vectors.front());
    return dump({{"n_embedding", vectors.front().size()}, {"embedding", std::move(embedding)}});
}

std::string vectors_metadata_json(const Embeddings& embeddings) {
    json metadata = {{"input_tokens", embeddings.tokens}, {"output_tokens", 0}};
    if (!embeddings.warnings.empty()) metadata["warnings"] = warnings_of(embeddings.warnings);
    return dump(metadata);
}

std::string error_json(const Error& error) {
    return dump({{"error", {{"code", to_string(error.code)}, {"message", error.message}}}});
}

std::string statistics_json(const HostedStatistics& statistics,
                            const std::map<std::uint32_t, std::shared_ptr<LoadedGraph>>& graphs,
                            std::size_t contexts) {
    const LanguageModelStatistics& process = statistics.process;
    json all = {{"contexts", contexts},
                {"sessions", {{"named", process.named_sessions}, {"anonymous", process.anonymous_sessions}}},
                {"process",
                 {{"models", process.process_models},
                  {"engines", process.process_engines},
                  {"resident_bytes", process.process_resident_bytes},
                  {"memory_share_in_use", process.memory_share_in_use}}}};
    for (const auto& [id, graph] : statistics.models) all["graphs"].push_back(graph_of(id, graph));
    for (const auto& [id, graph] : graphs)
        if (graph) all["tensor_graphs"].push_back(tensor_graph_of(id, *graph));
    return dump(all);
}

}  // namespace headrace::wasi_nn
