#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headrace/language_model.h"

namespace headrace::llm {

// A parameter is declared once: its entry in settings/<struct>.inc says type, name and default of the field,
// the level that may set it, its names in JSON, an example, its documentation and the values that are
// allowed. Here an entry is a field; parameters/rows.cpp makes it a row of the table that reads, prints and
// documents it.
//
//   HR_PARAMETER(type, field, default, level, path, names, example, summary[, values])
//   HR_FIELD(type, field, default)                               a field that custom parameters set
//   HR_CUSTOM(custom, level, path, names, example, summary)      a parameter that is not one plain field
#define HR_PARAMETER(type, field, value, ...) type field = value;
#define HR_FIELD(type, field, ...) type field = __VA_ARGS__;
#define HR_CUSTOM(...)

enum class Priority { low, normal, high, urgent };

using Messages = std::vector<Message>;

using TextMap = std::map<std::string, std::string>;
using TextBiases = std::vector<std::pair<std::string, float>>;    ///< every token of the text gets the bias
using AdapterFiles = std::vector<std::pair<std::string, float>>;  ///< path and scale
using AdapterScales = std::vector<std::pair<int, float>>;         ///< of the model's adapters by position

/// llama.cpp's samplers.
enum class SamplerKind {
    penalties,
    dry,
    top_n_sigma,
    top_k,
    typical_p,
    top_p,
    min_p,
    xtc,
    temperature,
    infill,
    adaptive_p
};

struct TokenBias {
    std::int32_t token;
    float bias;

    bool operator==(const TokenBias&) const = default;
};

/// What starts a lazy grammar.
struct GrammarTrigger {
    enum class Type { token, word, pattern, pattern_full };

    Type type = Type::word;
    std::string value;
    std::int32_t token = -1;  ///< of the type token

    bool operator==(const GrammarTrigger&) const = default;
};

/// The n_ctx that nobody chose: what the model was trained with, up to a limit that every machine has room
/// for.
constexpr int kUsualContext = -1;
/// The n_ctx of llama.cpp's -c 0: all that the model was trained with, or what memory has room for.
constexpr int kTrainedContext = 0;

/// The seed that asks for another one each time.
constexpr std::uint32_t kRandomSeed = 0xFFFFFFFF;

/// How tokens are chosen: what requests may set of llama.cpp's common_params_sampling, with its defaults.
struct SamplingSettings {
#include "llm/settings/sampling.inc"
    bool operator==(const SamplingSettings&) const = default;
};

/// What a chat template asks of the sampler. make_prompt writes it; no parameter does.
struct TemplateDemands {
    std::string grammar;            ///< GBNF of tool calls; beats the request's
    std::string generation_prompt;  ///< what the template has put in front of the answer
    // Tokens between which the model thinks, and those that end thoughts which reach the budget.
    std::vector<std::int32_t> thinking_start, thinking_cut_off;
    std::vector<std::vector<std::int32_t>> thinking_ends;

    bool operator==(const TemplateDemands&) const = default;
};

/// When a generation ends besides the end of the answer and its token limit. All are off by default.
struct StoppingSettings {
#include "llm/settings/stopping.inc"
    bool operator==(const StoppingSettings&) const = default;
};

/// Drafting tokens ahead and checking them in one batch; changes the speed, never the answer.
struct SpeculationSettings {
#include "llm/settings/speculation.inc"
    bool operator==(const SpeculationSettings&) const = default;
};

/// What one request may choose. Defaults come from the session, the model and here, in this order.
struct RequestSettings {
    SamplingSettings sampling;
    StoppingSettings stopping;
    SpeculationSettings speculation;
    TemplateDemands demands;
#include "llm/settings/request.inc"
    bool operator==(const RequestSettings&) const = default;
};

struct SessionSettings {
#include "llm/settings/session.inc"
    bool operator==(const SessionSettings&) const = default;
};

struct QueueSettings {
#include "llm/settings/queue.inc"
    bool operator==(const QueueSettings&) const = default;
};

/// Memory of prompts that were read before.
struct CacheSettings {
#include "llm/settings/cache.inc"
    bool operator==(const CacheSettings&) const = default;
};

/// What the loaded weights depend on.
struct ModelSettings {
#include "llm/settings/model.inc"
    bool operator==(const ModelSettings&) const = default;
};

/// What decides how much memory a context takes, and so on where layers are placed that share it.
struct ContextMemory {
#include "llm/settings/context_memory.inc"
    bool operator==(const ContextMemory&) const = default;
};

struct ContextSettings : ContextMemory {
#include "llm/settings/context.inc"
    bool operator==(const ContextSettings&) const = default;
};

struct LogSettings {
#include "llm/settings/log.inc"
    bool operator==(const LogSettings&) const = default;
};

/// All that an engine is made from besides the model's file, and so the key that it is shared by.
struct EngineSettings {
    ModelSettings model;
    ContextSettings context;
    QueueSettings queue;
    CacheSettings cache;

    bool operator==(const EngineSettings&) const = default;
};

/// Every parameter.
struct Settings : EngineSettings {
    Settings();  // all defaults, once: inlined at every {}, they are much code and false warnings of GCC's

    RequestSettings request;
    SessionSettings session;
    LogSettings log;
#include "llm/settings/service.inc"
    /// Values that cannot be taken as they are become warnings; a door's choice, and no parameter. See
    /// with_parameters.
    bool lenient = false;
};

#undef HR_PARAMETER
#undef HR_FIELD
#undef HR_CUSTOM

}  // namespace headrace::llm
