#include "records.h"

#include <type_traits>

namespace headrace::node::llm {
namespace {

/// The member of that name, if it is of that type.
template <class T>
T member(const Parameters& of, std::string_view name) {
    const ParameterValue* value = of.find(name);
    const T* found = value ? std::get_if<T>(value) : nullptr;
    return found ? *found : T{};
}

ToolCall call_of(const ParameterValue& value) {
    const auto& call = std::get<Parameters>(value);
    return {member<std::string>(call, "name"), member<std::string>(call, "arguments"),
            member<std::string>(call, "id")};
}

Message message_of(const ParameterValue& value) {
    const auto& given = std::get<Parameters>(value);
    Message message{.role = member<std::string>(given, "role"),
                    .content = member<std::string>(given, "content"),
                    .reasoning = member<std::string>(given, "reasoning"),
                    .tool_call_id = member<std::string>(given, "toolCallId"),
                    .tool_name = member<std::string>(given, "toolName")};
    for (const ParameterValue& call : member<std::vector<ParameterValue>>(given, "toolCalls"))
        message.tool_calls.push_back(call_of(call));
    for (const ParameterValue& part : member<std::vector<ParameterValue>>(given, "parts"))
        message.parts.push_back(std::get<std::string>(part));
    return message;
}

napi_value call_value(napi_env env, const ToolCall& call) {
    return Record(env).add("name", call.name).add("arguments", call.arguments).add("id", call.id);
}

napi_value probability_value(napi_env env, const TokenProbability& probability) {
    return Record(env)
        .add("token", probability.token)
        .add("text", probability.text)
        .add("probability", probability.probability);
}

napi_value probabilities_value(napi_env env, const std::vector<TokenProbability>& of_token) {
    std::vector<napi_value> items;
    for (const TokenProbability& one : of_token) items.push_back(probability_value(env, one));
    return list(env, items);
}

napi_value timings_value(napi_env env, const Timings& timings) {
    return Record(env)
        .add("queuedMs", timings.queued_ms)
        .add("promptMs", timings.prompt_ms)
        .add("generateMs", timings.generate_ms)
        .add("promptPerSecond", timings.prompt_per_second)
        .add("generatedPerSecond", timings.generated_per_second);
}

napi_value message_value(napi_env env, const Message& message) {
    Record record(env);
    record.add("role", message.role).add("content", message.content);
    if (!message.reasoning.empty()) record.add("reasoning", message.reasoning);
    if (!message.tool_calls.empty()) record.add_list("toolCalls", message.tool_calls, call_value);
    if (!message.tool_call_id.empty()) record.add("toolCallId", message.tool_call_id);
    if (!message.tool_name.empty()) record.add("toolName", message.tool_name);
    return record;
}

napi_value warning_value(napi_env env, const Warning& warning) {
    return Record(env).add("parameter", warning.parameter).add("message", warning.message);
}

}  // namespace

Request request_of(std::string_view json) {
    const Parameters given = Parameters::from_json(json);
    Request request{.prompt = member<std::string>(given, "prompt"),
                    .parameters = member<Parameters>(given, "parameters")};
    for (const ParameterValue& message : member<std::vector<ParameterValue>>(given, "messages"))
        request.messages.push_back(message_of(message));
    for (const ParameterValue& token : member<std::vector<ParameterValue>>(given, "tokens"))
        request.tokens.push_back(static_cast<std::int32_t>(std::get<std::int64_t>(token)));
    return request;
}

napi_value to_value(napi_env env, const std::vector<float>& numbers) {
    return typed_array(env, napi_float32_array, numbers);
}

napi_value to_value(napi_env env, const std::vector<std::int32_t>& numbers) {
    return typed_array(env, napi_int32_array, numbers);
}

napi_value to_value(napi_env env, const std::vector<Warning>& warnings) {
    std::vector<napi_value> items;
    for (const Warning& warning : warnings) items.push_back(warning_value(env, warning));
    return list(env, items);
}

napi_value to_value(napi_env env, const std::vector<Message>& messages) {
    std::vector<napi_value> items;
    for (const Message& message : messages) items.push_back(message_value(env, message));
    return list(env, items);
}

napi_value to_value(napi_env env, const Reply& reply) {
    return Record(env)
        .add("text", reply.text)
        .add("content", reply.content)
        .add("reasoning", reply.reasoning)
        .add_list("toolCalls", reply.tool_calls, call_value)
        .add("stopReason", to_string(reply.stop_reason))
        .add("stopDetail", reply.stop_detail)
        .add("promptTokens", reply.prompt_tokens)
        .add("cachedTokens", reply.cached_tokens)
        .add("generatedTokens", reply.generated_tokens)
        .add("reasoningTokens", reply.reasoning_tokens)
        .add("tokens", to_value(env, reply.tokens))
        .add_list("probabilities", reply.probabilities, probabilities_value)
        .add("draftedTokens", reply.drafted_tokens)
        .add("acceptedTokens", reply.accepted_tokens)
        .add("contextShifts", reply.context_shifts)
        .add("droppedMessages", reply.dropped_messages)
        .add("timings", timings_value(env, reply.timings))
        .add("warnings", to_value(env, reply.warnings))
        .add("model", reply.model);
}

napi_value to_value(napi_env env, const ModelInfo& info) {
    return Record(env)
        .add("path", info.path)
        .add("description", info.description)
        .add("chatTemplate", info.chat_template)
        .add("beginOfText", info.begin_of_text)
        .add("endOfText", info.end_of_text)
        .add("vocabulary", info.vocabulary)
        .add("vocabularySize", info.vocabulary_size)
        .add("trainingContext", info.training_context)
        .add("embeddingSize", info.embedding_size)
        .add("parameters", info.parameters)
        .add("bytes", info.bytes)
        .add("contextTokens", info.context_tokens)
        .add("requestTokens", info.request_tokens)
        .add("parallel", info.parallel)
        .add("deviceBytes", info.device_bytes)
        .add("metadata", text(env, info.metadata.to_json()));
}

napi_value to_value(napi_env env, const LanguageModelStatistics& statistics) {
    return Record(env)
        .add("submitted", statistics.submitted)
        .add("finished", statistics.finished)
        .add("failed", statistics.failed)
        .add("cancelled", statistics.cancelled)
        .add("rejected", statistics.rejected)
        .add("waiting", statistics.waiting)
        .add("running", statistics.running)
        .add("promptTokens", statistics.prompt_tokens)
        .add("cachedTokens", statistics.cached_tokens)
        .add("generatedTokens", statistics.generated_tokens)
        .add("draftedTokens", statistics.drafted_tokens)
        .add("acceptedTokens", statistics.accepted_tokens)
        .add("promptMs", statistics.prompt_ms)
        .add("decodeMs", statistics.decode_ms)
        .add("steps", statistics.steps)
        .add("threads", statistics.threads)
        .add("weightBytes", statistics.weight_bytes)
        .add("contextTokens", statistics.context_tokens)
        .add("rememberedTokens", statistics.remembered_tokens)
        .add("diskCachedTokens", statistics.disk_cached_tokens)
        .add("diskWrittenTokens", statistics.disk_written_tokens)
        .add("diskFailures", statistics.disk_failures)
        .add("diskCacheBytes", statistics.disk_cache_bytes)
        .add("namedSessions", statistics.named_sessions)
        .add("anonymousSessions", statistics.anonymous_sessions);
}

}  // namespace headrace::node::llm
