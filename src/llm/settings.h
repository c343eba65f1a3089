#pragma once
#include <common/common.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "headrace/language_model.h"

namespace headrace::llm {

enum class Priority { low, normal, high, urgent };

using Messages = std::vector<Message>;

/// When a generation ends besides the end of the answer and its token limit. All are off by default.
struct StoppingSettings {
    std::vector<std::string> strings;   ///< ends before the first of these; never shown
    std::vector<std::string> patterns;  ///< regular expressions; the match is shown, ^ and $ are a line's
    /// The same, which may match the empty text, too: they count from the first character on.
    std::vector<std::string> trigger_patterns, filter_patterns;
    int64_t max_predict_ms = -1;  ///< time for generating, from the first token on
    bool limits_time = true;      ///< false: neither that limit nor the adaptive one
    bool adaptive_time = false;   ///< the limit is time_multiplier times what the first tokens let expect
    int64_t min_time_ms = 1000;   ///< the adaptive limit is no shorter
    float time_multiplier = 2;
    int n_indent = 0;                ///< ends at a line that is indented less
    int repetition_window = 0;       ///< tokens in which a repeated run is looked for; 0 is off
    int repetition_count = 4;        ///< runs that make a loop
    bool detect_repetition = false;  ///< a window of 128 tokens where none is given
    float similarity_threshold =
        0;                      ///< 0..1: ends when a sentence is that similar to an earlier one; 0 is off
    int similarity_window = 8;  ///< sentences that are compared with
};

/// Drafting tokens ahead and checking them in one batch; changes the speed, never the answer.
struct SpeculationSettings {
    bool enabled = false;
    int n_max = 16;               ///< tokens of a draft
    int ngram_size = 4;           ///< tokens that must repeat before a draft is taken from the history
    float min_acceptance = 0.3f;  ///< below this share of accepted tokens drafting pauses
};

/// What one request may choose. Defaults come from the session, the model and here, in this order.
struct RequestSettings {
    common_params_sampling sampling;
    std::string grammar;      ///< GBNF
    std::string json_schema;  ///< JSON text; excludes grammar
    bool grammar_lazy = false;
    std::vector<std::string> preserved_tokens;
    std::vector<std::pair<std::string, float>> logit_bias_text;  ///< every token of the text gets the bias
    std::vector<std::string> forbidden;                          ///< texts that never appear in the answer
    std::vector<std::string> required;  ///< the model does not end the answer before one of these is there
    int n_predict = -1;  ///< tokens at most; -1: up to the context's end; 0: only read the prompt
    int n_keep = 0;      ///< tokens that a context shift keeps at the start; -1: the whole prompt
    int n_discard = 0;   ///< tokens that a context shift drops; 0: half
    bool cache_prompt = true;
    Priority priority = Priority::normal;
    int64_t timeout_ms = -1;        ///< for the whole request, waiting included
    int64_t queue_timeout_ms = -1;  ///< for waiting
    StoppingSettings stopping;
    SpeculationSettings speculation;
    /// on: the input is a message of a conversation; off: a prompt as it is; auto: a prompt that holds the
    /// template's control tokens already is one as it is.
    std::string chat = "auto";
    bool history = true;               ///< messages and answers are remembered for the session's next ones
    bool echo_special = false;         ///< control tokens show in the text
    bool post_sampling_probs = false;  ///< n_probs of what the samplers leave, not of the model's choice
    std::string session_id;            ///< the named session to continue; empty: the context's own
    std::string system_prompt;
    Messages previous_messages;  ///< the conversation up to the input; empty: what the session remembers
    std::string reasoning_format = "deepseek";
    bool enable_thinking = true;
    std::map<std::string, std::string> template_kwargs;  ///< values are JSON texts
    std::string tools;                                   ///< JSON array of OpenAI's tool definitions
    std::string tool_choice = "auto";                    ///< auto, none, required
    bool parallel_tool_calls = false;
    std::vector<std::pair<int, float>> lora;  ///< scales of the model's adapters by position
    bool return_tokens = false;
    bool timings_per_token = false;
    int embd_normalize = 2;  ///< -1 none, 0 largest magnitude, 1 taxicab, 2 Euclidean, more: that p-norm
};

struct SessionSettings {
    int max_sessions = 100;   ///< named sessions; the least recently used idle one is closed for another
    int max_concurrent = 64;  ///< anonymous contexts open at once
    int64_t idle_timeout_ms = 300000;  ///< 0: never
    bool auto_cleanup = true;
    int max_history = 0;  ///< messages kept of a conversation, besides the system's; 0: all

    bool operator==(const SessionSettings&) const = default;
};

struct QueueSettings {
    int max_waiting = 256;         ///< requests that may wait; more are told that the engine is busy
    int reject_threshold = 0;      ///< max_waiting is no more; 0: as it is
    int64_t aging_ms = 5000;       ///< waiting (or paused) that long raises a request by one priority
    int64_t step_target_ms = 150;  ///< a step that others wait for should take no longer
};

/// Memory of prompts that were read before.
struct CacheSettings {
    bool enable_prompt_cache = true;
    int64_t retention_ms = 300000;  ///< an unused prompt is forgotten after that; 0: never
    int ram_mib = 1024;             ///< of prompts moved out of the context; 0: none, -1: no limit
    double pressure_threshold =
        0.9;  ///< share of the machine's memory in use from which caches are given back
};

struct ModelSettings {
    int n_gpu_layers = -1;             ///< -1: as many as fit
    std::vector<std::string> devices;  ///< names of ggml's, or rpc://host:port
    int host_timeout_ms = 60000;       ///< a remote host that is silent for that long is lost
    std::string split_mode = "layer";
    int main_gpu = 0;
    std::vector<float> tensor_split;
    std::string load_mode = "auto";  ///< auto, none, mmap, mlock, mmap+mlock, direct-io
    bool check_tensors = false;
    bool repack = true;
    int fit_margin_mib = 1024;
    std::vector<std::pair<std::string, float>> lora;  ///< path and scale
    std::vector<std::string> kv_overrides;            ///< key=type:value
    std::string chat_template;                        ///< Jinja; empty: the model's
    bool jinja = true;
    std::string replace;  ///< "auto", "true", "false": whether a load replaces the graph that is there
};

struct ContextSettings {
    int n_ctx = 0;  ///< tokens of all sequences together; 0: the model's, at most 8192
    int n_batch = 2048;
    int n_ubatch = 512;
    int n_parallel = 8;      ///< streams that run at once
    int max_sequences = 64;  ///< running and remembered ones
    std::string type_k = "f16", type_v = "f16";
    std::string flash_attn = "auto";
    int n_threads = 0;        ///< 0: the cores that this process may use
    int n_threads_batch = 0;  ///< 0: as n_threads
    bool adapt_threads = true;
    bool context_shift = false;
    std::string rope_scaling;
    float rope_freq_base = 0, rope_freq_scale = 0;
    float yarn_ext_factor = -1, yarn_attn_factor = -1, yarn_beta_fast = -1, yarn_beta_slow = -1;
    int yarn_orig_ctx = 0;
    bool swa_full = true;
    bool offload_kqv = true;
    std::string pooling, attention;  ///< empty: the model's
    bool embeddings = false;         ///< the model is for embeddings
    std::string draft_model;         ///< path of a smaller model that drafts
    int draft_gpu_layers = -1;
};

struct LogSettings {
    std::string level = "info";   ///< debug, info, warn, error, none
    std::string format = "text";  ///< text, json
    std::string file;             ///< empty: stderr

    bool operator==(const LogSettings&) const = default;
};

/// Every parameter. One row each in parameter_rows_*.cpp says its names, range and place in the
/// documentation.
struct Settings {
    RequestSettings request;
    SessionSettings session;
    QueueSettings queue;
    CacheSettings cache;
    ModelSettings model;
    ContextSettings context;
    LogSettings log;
    std::string model_root;  ///< the folder that model names are confined to; empty: none
    std::map<std::string, std::string> model_aliases;  ///< name to path
    bool guest_templates = false;  ///< chat templates of guests are run though a model root confines them
    bool strict = false;           ///< unknown, misplaced and clamped parameters are errors
    /// Texts are read as hosts of other backends write them; a door's choice, and no parameter. See
    /// with_parameters.
    bool lenient = false;
};

}  // namespace headrace::llm
