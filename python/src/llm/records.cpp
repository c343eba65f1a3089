#include "records.h"

#include <nanobind/stl/vector.h>

#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "headrace/language_model.h"
#include "text_caster.h"

namespace headrace::python {
namespace {

namespace nb = nanobind;

template <class Record, class Value>
struct Field {
    const char* name;
    Value Record::*member;
    const char* doc;
};
template <class Record, class Value>
Field(const char*, Value Record::*, const char*) -> Field<Record, Value>;

/// The fields of each record, in the order of the header.
constexpr auto fields_of(const ToolCall*) {
    return std::tuple(Field{"name", &ToolCall::name, "The function."},
                      Field{"arguments", &ToolCall::arguments, "A JSON object as text."},
                      Field{"id", &ToolCall::id, "What the tool's answer refers to; may be empty."});
}

constexpr auto fields_of(const Message*) {
    return std::tuple(
        Field{"role", &Message::role, "system, user, assistant or tool."},
        Field{"content", &Message::content, "The text."},
        Field{"reasoning", &Message::reasoning, "Of the assistant, before its answer."},
        Field{"tool_calls", &Message::tool_calls, "Of the assistant."},
        Field{"tool_call_id", &Message::tool_call_id, "Of a tool's answer: which call it answers."},
        Field{"tool_name", &Message::tool_name, "Of a tool's answer: whose it is."},
        Field{"parts", &Message::parts, "In place of content: texts that the chat template may keep apart."});
}

constexpr auto fields_of(const Warning*) {
    return std::tuple(Field{"parameter", &Warning::parameter, "Its name."},
                      Field{"message", &Warning::message, "What became of it, and why."});
}

constexpr auto fields_of(const TokenProbability*) {
    return std::tuple(Field{"token", &TokenProbability::token, "Its number in the vocabulary."},
                      Field{"text", &TokenProbability::text, "Its piece of text."},
                      Field{"probability", &TokenProbability::probability, "0 to 1."});
}

constexpr auto fields_of(const Timings*) {
    return std::tuple(
        Field{"queued_ms", &Timings::queued_ms, "Milliseconds from the request to its first step."},
        Field{"prompt_ms", &Timings::prompt_ms, "Milliseconds from there to the first token."},
        Field{"generate_ms", &Timings::generate_ms, "Milliseconds from the first token to the last."},
        Field{"prompt_per_second", &Timings::prompt_per_second,
              "Tokens read in a second, those from a cache not counted."},
        Field{"generated_per_second", &Timings::generated_per_second,
              "Tokens generated in a second, the first not counted."});
}

constexpr auto fields_of(const Reply*) {
    return std::tuple(
        Field{"text", &Reply::text, "The whole answer as the model wrote it."},
        Field{"content", &Reply::content, "The answer without reasoning and tool calls."},
        Field{"reasoning", &Reply::reasoning, "What the parameter reasoning_format takes out of the answer."},
        Field{"tool_calls", &Reply::tool_calls, "The calls of tools in the answer."},
        Field{"stop_reason", &Reply::stop_reason,
              "end_of_answer, token_limit, context_full, stop_string, pattern, time_limit, indentation, "
              "repetition, similarity, grammar or cancelled."},
        Field{"stop_detail", &Reply::stop_detail, "The stop string, the pattern, the repeated text."},
        Field{"prompt_tokens", &Reply::prompt_tokens, "Tokens of the prompt, those from a cache included."},
        Field{"cached_tokens", &Reply::cached_tokens,
              "Tokens of the prompt that were read for an earlier request."},
        Field{"generated_tokens", &Reply::generated_tokens, "How many tokens the answer has."},
        Field{"tokens", &Reply::tokens, "The answer's tokens, as numbers in the vocabulary."},
        Field{"prompt", &Reply::prompt, "The prompt's tokens."},
        Field{"probabilities", &Reply::probabilities,
              "For each token of the answer the likeliest ones, with the parameter n_probs."},
        Field{"token_probabilities", &Reply::token_probabilities,
              "Of each token of the answer itself, with n_probs."},
        Field{"prompt_probabilities", &Reply::prompt_probabilities,
              "For each token of the prompt but the first the likeliest ones, n_probs of them, with the "
              "parameter prompt_probs."},
        Field{"prompt_token_probabilities", &Reply::prompt_token_probabilities,
              "Of each token of the prompt but the first itself, with prompt_probs."},
        Field{"drafted_tokens", &Reply::drafted_tokens, "Tokens that speculative decoding proposed."},
        Field{"accepted_tokens", &Reply::accepted_tokens, "How many of those were right."},
        Field{"pauses", &Reply::pauses, "How often a request of higher priority went first."},
        Field{"context_shifts", &Reply::context_shifts, "How often the context was shifted."},
        Field{"dropped_messages", &Reply::dropped_messages,
              "The oldest messages, which the context had no room for."},
        Field{"timings", &Reply::timings, "How long it took."},
        Field{"warnings", &Reply::warnings, "Parameters that were not taken as they are."},
        Field{"model", &Reply::model, "What llama.cpp calls it, such as 'qwen3 0.6B Q8_0'."});
}

constexpr auto fields_of(const Embeddings*) {
    return std::tuple(
        Field{"vectors", &Embeddings::vectors, "One list of floats for each text."},
        Field{"tokens", &Embeddings::tokens, "How many tokens of all texts were read."},
        Field{"warnings", &Embeddings::warnings, "Parameters that were not taken as they are."});
}

constexpr auto fields_of(const RankScores*) {
    return std::tuple(
        Field{"scores", &RankScores::scores,
              "One of each document, as the model gives it; higher is nearer."},
        Field{"tokens", &RankScores::tokens, "How many tokens were read."},
        Field{"warnings", &RankScores::warnings, "Parameters that were not taken as they are."});
}

constexpr auto fields_of(const ModelInfo*) {
    using I = ModelInfo;
    return std::tuple(
        Field{"path", &I::path, "Of the GGUF file."},
        Field{"description", &I::description, "What llama.cpp calls it, such as 'qwen3 0.6B Q8_0'."},
        Field{"chat_template", &I::chat_template, "Jinja's source; empty when the model has none."},
        Field{"begin_of_text", &I::begin_of_text, "A token; empty where there is none."},
        Field{"end_of_text", &I::end_of_text, "A token; empty where there is none."},
        Field{"vocabulary", &I::vocabulary, "The kind of tokenizer: SPM, BPE, WPM, UGM ..."},
        Field{"vocabulary_size", &I::vocabulary_size, "How many tokens there are."},
        Field{"training_context", &I::training_context, "Tokens that it was trained with."},
        Field{"embedding_size", &I::embedding_size, "Numbers of a token's vector."},
        Field{"parameters", &I::parameters, "How many weights it has."},
        Field{"bytes", &I::bytes, "Size of the weights."},
        Field{"context_tokens", &I::context_tokens, "Tokens that all requests share."},
        Field{"request_tokens", &I::request_tokens, "Tokens that one may have, its answer included."},
        Field{"parallel", &I::parallel, "Requests that run at once."});
}

constexpr auto fields_of(const RenderedPrompt*) {
    return std::tuple(
        Field{"text", &RenderedPrompt::text, "As the chat template writes it, or the request's own."},
        Field{"tokens", &RenderedPrompt::tokens, "Numbers in the vocabulary."});
}

constexpr auto fields_of(const SavedPrompt*) {
    return std::tuple(
        Field{"tokens", &SavedPrompt::tokens, "How many tokens the file has."},
        Field{"bytes", &SavedPrompt::bytes, "Size of the file."},
        Field{"text", &SavedPrompt::text, "The tokens themselves, of a file that was restored."});
}

constexpr auto fields_of(const LanguageModelStatistics*) {
    using S = LanguageModelStatistics;
    return std::tuple(
        Field{"name", &S::name, "What the model was loaded as."},
        Field{"description", &S::description, "What llama.cpp calls it, such as 'qwen3 0.6B Q8_0'."},
        Field{"weight_bytes", &S::weight_bytes, "Size of the weights."},
        Field{"submitted", &S::submitted, "Requests since the model was loaded."},
        Field{"finished", &S::finished, "Requests that ended well."},
        Field{"failed", &S::failed, "Requests that failed."},
        Field{"cancelled", &S::cancelled, "Requests that were cancelled."},
        Field{"rejected", &S::rejected, "Requests that a full queue did not take."},
        Field{"waiting", &S::waiting, "Requests that wait now."},
        Field{"running", &S::running, "Requests that run now."},
        Field{"prompt_tokens", &S::prompt_tokens, "Tokens of prompts, those from a cache included."},
        Field{"cached_tokens", &S::cached_tokens, "Tokens of prompts that a cache had."},
        Field{"generated_tokens", &S::generated_tokens, "Tokens of answers."},
        Field{"drafted_tokens", &S::drafted_tokens, "Tokens that speculative decoding proposed."},
        Field{"accepted_tokens", &S::accepted_tokens, "How many of those were right."},
        Field{"drafts", &S::drafts, "Drafts that were checked."},
        Field{"accepted_at", &S::accepted_at, "Right tokens of drafts, by their place in the draft."},
        Field{"prompt_ms", &S::prompt_ms, "Milliseconds of steps that read prompts."},
        Field{"decode_ms", &S::decode_ms, "Milliseconds of steps in which answers were written."},
        Field{"stream_steps", &S::stream_steps, "Requests that had a part in a step, of all steps."},
        Field{"longest_request", &S::longest_request, "Tokens of the longest prompt with its answer."},
        Field{"steps", &S::steps, "Steps of the engine."},
        Field{"overtaken_steps", &S::overtaken_steps, "Steps that another model's engine went before."},
        Field{"broken_off_steps", &S::broken_off_steps, "Steps that a cancelled request ended."},
        Field{"pauses", &S::pauses, "How often a request of higher priority went first."},
        Field{"context_shifts", &S::context_shifts, "How often a context was shifted."},
        Field{"longest_step_ms", &S::longest_step_ms, "Milliseconds of the longest step."},
        Field{"threads", &S::threads, "Threads of the latest step."},
        Field{"remembered_sequences", &S::remembered_sequences, "Sequences in the cache of keys and values."},
        Field{"remembered_tokens", &S::remembered_tokens, "Tokens in that cache."},
        Field{"ram_cache_bytes", &S::ram_cache_bytes, "Memory of sequences that were pushed out of it."},
        Field{"disk_cached_tokens", &S::disk_cached_tokens, "Tokens of prompts that came from `cache_dir`."},
        Field{"disk_written_tokens", &S::disk_written_tokens, "Tokens that were written there."},
        Field{"disk_failures", &S::disk_failures, "Reads and writes of it that failed."},
        Field{"disk_cache_bytes", &S::disk_cache_bytes, "Bytes of that folder."},
        Field{"evictions", &S::evictions, "Sequences that were pushed out."},
        Field{"context_tokens", &S::context_tokens, "Tokens that all sequences share."},
        Field{"named_sessions", &S::named_sessions, "Conversations with a name."},
        Field{"anonymous_sessions", &S::anonymous_sessions, "Conversations without one."},
        Field{"process_models", &S::process_models, "Models that this process has loaded."},
        Field{"process_engines", &S::process_engines, "Engines of this process."},
        Field{"process_resident_bytes", &S::process_resident_bytes, "Resident memory of this process."},
        Field{"memory_share_in_use", &S::memory_share_in_use,
              "Of the memory of the machine or the control group, 0 to 1."});
}

template <class T>
concept IsRecord = requires(const T* record) {
    fields_of(record);
};

/// Calls `use` with each field of a record's class.
template <class T, class Use>
void for_each_field(Use use) {
    std::apply([&](const auto&... field) { (use(field), ...); }, fields_of(static_cast<const T*>(nullptr)));
}

// Values of dicts, lists, texts and numbers.

template <class T>
nb::object plain(const std::vector<T>& values);
template <class T>
nb::object plain(const T& value) {
    return nb::cast(value);
}
template <IsRecord T>
nb::object plain(const T& record) {
    nb::dict dict;
    for_each_field<T>([&](const auto& field) { dict[field.name] = plain(record.*field.member); });
    return dict;
}
template <class T>
nb::object plain(const std::vector<T>& values) {
    nb::list list;
    for (const T& value : values) list.append(plain(value));
    return list;
}

template <class T>
std::string repr(const T& record, const char* name) {
    std::string text = name;
    for_each_field<T>([&](const auto& field) {
        const nb::object value = nb::cast(record.*field.member);
        text += (text.size() > std::string_view(name).size() ? ", " : "(") + std::string(field.name) + "=" +
                nb::cast<std::string>(nb::repr(value));
    });
    return text + ")";
}

template <class T>
nb::tuple state_of(const T& record) {
    nb::list values;
    for_each_field<T>([&](const auto& field) { values.append(nb::cast(record.*field.member)); });
    return nb::tuple(values);
}

template <class T>
T with_state(const nb::tuple& state) {
    T record;
    std::size_t index = 0;
    for_each_field<T>([&](const auto& field) {
        using Value = std::decay_t<decltype(record.*field.member)>;
        record.*field.member = nb::cast<Value>(nb::object(state[index++]));
    });
    return record;
}

template <class T>
void bind_record(nb::module_& m, const char* name, const char* doc) {
    nb::class_<T> cls(m, name, doc);
    for_each_field<T>([&](const auto& field) { cls.def_ro(field.name, field.member, field.doc); });
    cls.def(
        "to_dict", [](const T& record) { return nb::cast<nb::dict>(plain(record)); },
        nb::sig("def to_dict(self) -> dict[str, object]"),
        "Everything as a dict, which json can write; records within are dicts, too.");
    cls.def("__repr__", [name](const T& record) { return repr(record, name); });
    cls.def(
        "__eq__",
        [](const T& record, nb::handle other) {
            return nb::isinstance<T>(other) && plain(record).equal(plain(nb::cast<const T&>(other)));
        },
        nb::sig("def __eq__(self, other: object, /) -> bool"));
    cls.attr("__hash__") = nb::none();
    cls.def("__getstate__", &state_of<T>);
    cls.def("__setstate__", [](T& record, const nb::tuple& state) { new (&record) T(with_state<T>(state)); });
}

}  // namespace

void bind_records(nb::module_& m) {
    bind_record<ToolCall>(m, "ToolCall", "A call of a tool, as the model wrote it.");
    bind_record<Message>(m, "Message", "A message of a conversation.");
    bind_record<Warning>(m, "ParameterWarning",
                         "A parameter that was clamped, adjusted to others, or has no effect.");
    bind_record<TokenProbability>(m, "TokenProbability", "A token that might have come.");
    bind_record<Timings>(m, "Timings", "How long the parts of a request took.");
    bind_record<Reply>(m, "Reply", "A whole answer.");
    bind_record<Embeddings>(m, "Embeddings", "Vectors of texts, or of the tokens of one text.");
    bind_record<RankScores>(m, "RankScores", "How well documents answer a query.");
    bind_record<ModelInfo>(m, "ModelInfo", "What a file and its load say of a model.");
    bind_record<RenderedPrompt>(m, "RenderedPrompt", "What a request becomes for the model.");
    bind_record<SavedPrompt>(m, "SavedPrompt", "What was read of a prompt, in a file.");
    bind_record<LanguageModelStatistics>(m, "LanguageModelStatistics",
                                         "Counts since a model was loaded, and what is held now.");
}

}  // namespace headrace::python
