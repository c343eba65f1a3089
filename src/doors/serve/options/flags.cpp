#include "doors/serve/options/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <type_traits>

namespace headrace::serve {
namespace {

std::vector<std::string> parts_of(const std::string& text, char separator = ',') {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);)
        if (!part.empty()) parts.push_back(part);
    return parts;
}

// Errors: whoever reads a flag's value puts the flag's name before them.

template <class Number>
Status read_number(const std::string& text, Number least, Number most, Number& value) {
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || value < least || value > most)
        return invalid("'{}' must be a number from {} to {}", text, least, most);
    return success();
}

/// A number of the options, to which `of` leads.
template <auto of, auto least, auto most>
Status set_number(ServeOptions& options, const std::string& text) {
    auto& value = of(options);
    using Number = std::remove_reference_t<decltype(value)>;
    return read_number<Number>(text, least, most, value);
}

Result<std::string> file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return failure(Code::not_found, "'{}' cannot be read", path);
    return std::string(std::istreambuf_iterator<char>(file), {});
}

Status read_keys(ServeOptions& options, const std::string& path) {
    HR_ASSIGN(const std::string text, file_text(path));
    for (std::string line : parts_of(text, '\n')) {
        while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
        if (!line.empty() && line.front() != '#') options.keys.push_back(std::move(line));
    }
    if (options.keys.empty()) return invalid("'{}' has no key", path);
    return success();
}

Status read_parallel(ServeOptions& options, const std::string& text) {
    long count = 0;
    HR_TRY(read_number(text, -1L, 256L, count));
    if (count == 0) return invalid("0 must be from 1 to 256, or -1 for {}", options.parallel);
    if (count < 0) return success();
    options.parallel = static_cast<std::size_t>(count);
    options.divides = true;
    return success();
}

Status add_adapters(ServeOptions& options, const std::string& text, bool scaled) {
    std::vector<ParameterValue> all;
    if (const ParameterValue* before = options.parameters.find("lora"))
        all = std::get<std::vector<ParameterValue>>(*before);
    for (const std::string& part : parts_of(text)) {
        float scale = 1;
        const auto colon = scaled ? part.rfind(':') : std::string::npos;
        if (scaled && colon == std::string::npos) return invalid("'{}' must be FILE:SCALE", part);
        if (scaled) HR_TRY(read_number(part.substr(colon + 1), -1e6f, 1e6f, scale));
        all.push_back(Parameters{{"path", part.substr(0, colon)}, {"scale", scale}});
    }
    options.parameters.set("lora", std::move(all));
    return success();
}

Status read_reasoning(ServeOptions& options, const std::string& text) {
    if (text != "on" && text != "off" && text != "auto") return invalid("'{}' must be on, off or auto", text);
    options.parameters.set("enable_thinking", text != "off");
    return success();
}

Status read_speculation(ServeOptions& options, const std::string& text) {
    if (text == "none") return options.parameters.set("speculative", false), success();
    if (text != "draft-simple" && text != "ngram-simple")
        return unsupported("'{}' must be none, draft-simple (with --model-draft) or ngram-simple", text);
    options.parameters.set("speculative", true);
    return success();
}

template <auto Member>
Status set_text(ServeOptions& options, const std::string& text) {
    options.*Member = text;
    return success();
}

template <auto Member>
Status add_list(ServeOptions& options, const std::string& text) {
    for (std::string& part : parts_of(text)) (options.*Member).push_back(std::move(part));
    return success();
}

/// A switch, which may be turned off: by its negative, or "off" in a file.
template <auto Member, bool Value = true>
Status set_switch(ServeOptions& options, const std::string& text) {
    options.*Member = (text == "true") == Value;
    return success();
}

constexpr const char* kNoDownloads =
    "this program downloads nothing: fetch the file and name it with --model";
constexpr const char* kNoMedia = "models here read texts, and no images or audio";
constexpr const char* kNoHostTools = "this server runs no tools: clients do";
constexpr const char* kOneModel = "a server has the models that it was started with";

using enum FlagKind;

const Flag kFlags[] = {
    // The program.
    {"-h --help --usage", "", "", "", "show this", a_switch, "", set_switch<&ServeOptions::shows_help>},
    {"--version", "", "", "", "show the version", a_switch, "", set_switch<&ServeOptions::shows_version>},
    {"-v --verbose --log-verbose", "", "", "", "show prompts in answers, as llama-server does (`__verbose`)",
     a_switch, "", set_switch<&ServeOptions::verbose>},
    {"--log-json --log-jsonl", "--no-log-jsonl", "", "LLAMA_ARG_LOG_JSONL", "log a JSON object a line",
     a_switch, "", set_switch<&ServeOptions::logs_json>},
    {"--log-disable", "", "", "", "log errors only", a_switch, "", set_switch<&ServeOptions::is_quiet>},
    {"--log-file", "", "FILE", "LLAMA_ARG_LOG_FILE", "append the engine's log to it", a_text, "log_file"},

    // Where it listens, and to whom.
    {"--host", "", "HOSTS", "LLAMA_ARG_HOST",
     "addresses by commas, or a socket's path ending in .sock; 127.0.0.1", a_text, "",
     [](ServeOptions& options, const std::string& text) -> Status {
         options.listener.hosts = parts_of(text);
         return options.listener.hosts.empty() ? Status(invalid("it is empty")) : success();
     }},
    {"--port", "", "N", "LLAMA_ARG_PORT", "8080; 0 chooses a free one", a_number, "",
     set_number < [](auto& options) -> auto& {return options.listener.port;
}  // namespace
, 0, 65535 >
}  // namespace headrace::serve
, {"--max-connections", "", "N", "", "served at once; 4096", a_number, "",
   set_number < [](auto& options) -> auto& {return options.listener.most_connections;
}
, 1, 65536 >
}
,
    {"--max-body-mib",
     "",
     "N",
     "",
     "of a request; 16",
     a_number,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         std::size_t mib = 0;
         HR_TRY(read_number<std::size_t>(text, 1, 1024, mib));
         options.listener.most_body_bytes = mib << 20;
         return success();
     }},
    {"-to --timeout",
     "",
     "SECONDS",
     "LLAMA_ARG_TIMEOUT",
     "for a client that neither sends nor reads; 30",
     a_number,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         long seconds = 0;
         HR_TRY(read_number(text, 1L, 86400L, seconds));
         options.listener.patience = std::chrono::seconds(seconds);
         return success();
     }},
    {"--api-key",
     "",
     "KEYS",
     "LLAMA_API_KEY",
     "keys by commas; requests must bring one",
     a_list,
     "",
     add_list<&ServeOptions::keys>},
    {"--api-key-file", "", "FILE",   "LLAMA_ARG_API_KEY_FILE", "a key a line; # begins a comment",
     a_text,           "", read_keys},
    {"--max-per-key", "", "N", "", "requests of one key at once; 0: no limit", a_number, "",
     set_number < [](auto& options) -> auto& {return options.most_per_key;
}
, 0, 1 << 20 >
}
,
    {"--cors-origins",
     "",
     "ORIGINS",
     "LLAMA_ARG_CORS_ORIGINS",
     "pages that browsers may call this from, by commas; *: all; localhost: this machine's. None unless "
     "given",
     a_text,
     "",
     set_text<&ServeOptions::cors_origins>},
    {"--metrics",
     "",
     "",
     "LLAMA_ARG_ENDPOINT_METRICS",
     "offer /metrics to Prometheus",
     a_switch,
     "",
     set_switch<&ServeOptions::offers_metrics>},
    {"--slots",
     "--no-slots",
     "",
     "LLAMA_ARG_ENDPOINT_SLOTS",
     "offer /slots (default)",
     a_switch,
     "",
     set_switch<&ServeOptions::offers_slots>},
    {"--props",           "",       "", "LLAMA_ARG_ENDPOINT_PROPS",
     "allow POST /props", a_switch, "", set_switch<&ServeOptions::changes_props>},
    {"--slot-save-path",
     "",
     "FOLDER",
     "",
     "where /slots may save and restore what slots have read",
     a_text,
     "",
     set_text<&ServeOptions::slot_save_path>},
    {"--ui --webui",
     "--no-ui --no-webui",
     "",
     "LLAMA_ARG_UI",
     "offer a page to chat with at / (default)",
     a_switch,
     "",
     set_switch<&ServeOptions::offers_page>},
    {"--allow-templates",
     "",
     "",
     "",
     "requests may bring a chat template of their own",
     a_switch,
     "",
     set_switch<&ServeOptions::allows_templates>},
    {"-a --alias",
     "",
     "NAMES",
     "LLAMA_ARG_ALIAS",
     "names of the model, by commas",
     a_list,
     "",
     add_list<&ServeOptions::aliases>},
    {"--tags",
     "",
     "TAGS",
     "LLAMA_ARG_TAGS",
     "shown with the model, by commas",
     a_list,
     "",
     add_list<&ServeOptions::tags>},

    // The model and its context.
    {"-m --model", "", "FILE", "LLAMA_ARG_MODEL", "GGUF file", a_text, "", set_text<&ServeOptions::model>},
    {"-c --ctx-size",
     "",
     "N",
     "LLAMA_ARG_CTX_SIZE",
     "tokens of all requests together; 0 the model's, at most 8192",
     a_number,
     "n_ctx"},
    {"-np --parallel",
     "",
     "N",
     "LLAMA_ARG_N_PARALLEL",
     "requests that run at once; each may have its part of --ctx-size. Unless given, 4 share all of it",
     a_number,
     "",
     read_parallel},
    {"-kvu --kv-unified",
     "-no-kvu --no-kv-unified",
     "",
     "LLAMA_ARG_KV_UNIFIED",
     "a request may have the whole --ctx-size",
     a_switch,
     "",
     set_switch<&ServeOptions::unified>},
    {"-b --batch-size", "", "N", "LLAMA_ARG_BATCH", "tokens of a step at most", a_number, "n_batch"},
    {"-ub --ubatch-size", "", "N", "LLAMA_ARG_UBATCH", "tokens computed at once", a_number, "n_ubatch"},
    {"-t --threads",
     "",
     "N",
     "LLAMA_ARG_THREADS",
     "of a step",
     a_number,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         int count = 0;
         HR_TRY(read_number(text, -1, 512, count));
         options.parameters.set("n_threads", std::max(count, 0));
         return success();
     }},
    {"-tb --threads-batch", "", "N", "", "of a step that reads prompts", a_number, "n_threads_batch"},
    {"-fa --flash-attn", "", "on|off|auto", "LLAMA_ARG_FLASH_ATTN", "flash attention", a_text, "flash_attn"},
    {"-ctk --cache-type-k",
     "",
     "TYPE",
     "LLAMA_ARG_CACHE_TYPE_K",
     "of the keys: f16, q8_0, q4_0 ...",
     a_text,
     "type_k"},
    {"-ctv --cache-type-v", "", "TYPE", "LLAMA_ARG_CACHE_TYPE_V", "of the values", a_text, "type_v"},
    {"--swa-full", "",        "", "LLAMA_ARG_SWA_FULL", "keep the whole context of sliding windows (default)",
     a_switch,     "swa_full"},
    {"-kvo --kv-offload",    "-nkvo --no-kv-offload",     "",
     "LLAMA_ARG_KV_OFFLOAD", "the cache lies on the GPU", a_switch,
     "offload_kqv"},
    {"--repack", "-nr --no-repack", "", "LLAMA_ARG_REPACK", "reorder weights for the CPU",
     a_switch,   "repack"},
    {"-cram --cache-ram", "", "MIB", "LLAMA_ARG_CACHE_RAM", "of prompts moved out of the context", a_number,
     "cache_ram"},
    {"--context-shift",
     "--no-context-shift",
     "",
     "LLAMA_ARG_CONTEXT_SHIFT",
     "a full context drops its oldest tokens",
     a_switch,
     "context_shift"},
    {"-ngl --gpu-layers --n-gpu-layers", "",     "N",           "LLAMA_ARG_N_GPU_LAYERS",
     "layers on the GPU; auto, all",     a_text, "n_gpu_layers"},
    {"-dev --device", "", "DEVICES", "LLAMA_ARG_DEVICE", "ggml's, or rpc://host:port", a_list, "devices"},
    {"-sm --split-mode",           "",     "MODE",      "LLAMA_ARG_SPLIT_MODE",
     "none, layer, row or tensor", a_text, "split_mode"},
    {"-mg --main-gpu", "", "N", "LLAMA_ARG_MAIN_GPU", "the GPU of what is not shared", a_number, "main_gpu"},
    {"-lm --load-mode", "", "MODE", "LLAMA_ARG_LOAD_MODE", "auto, none, mmap, mlock, mmap+mlock, dio", a_text,
     "load_mode"},
    {"--mlock", "", "", "", "keep the model in memory", a_switch, "use_mlock"},
    {"--mmap", "--no-mmap", "", "", "map the file", a_switch, "use_mmap"},
    {"--check-tensors", "", "", "", "look for damaged values", a_switch, "check_tensors"},
    {"--override-kv", "", "KEY=TYPE:VALUE", "", "the file's metadata, replaced", a_list, "override_kv"},
    {"--rope-scaling",       "",     "METHOD",      "LLAMA_ARG_ROPE_SCALING_TYPE",
     "none, linear or yarn", a_text, "rope_scaling"},
    {"--rope-scale", "", "N", "LLAMA_ARG_ROPE_SCALE", "expands the context", a_number, "rope_scale"},
    {"--rope-freq-base", "", "N", "LLAMA_ARG_ROPE_FREQ_BASE", "", a_number, "rope_freq_base"},
    {"--rope-freq-scale", "", "N", "LLAMA_ARG_ROPE_FREQ_SCALE", "", a_number, "rope_freq_scale"},
    {"--yarn-orig-ctx", "", "N", "LLAMA_ARG_YARN_ORIG_CTX", "", a_number, "yarn_orig_ctx"},
    {"--yarn-ext-factor", "", "N", "LLAMA_ARG_YARN_EXT_FACTOR", "", a_number, "yarn_ext_factor"},
    {"--yarn-attn-factor", "", "N", "LLAMA_ARG_YARN_ATTN_FACTOR", "", a_number, "yarn_attn_factor"},
    {"--yarn-beta-slow", "", "N", "LLAMA_ARG_YARN_BETA_SLOW", "", a_number, "yarn_beta_slow"},
    {"--yarn-beta-fast", "", "N", "LLAMA_ARG_YARN_BETA_FAST", "", a_number, "yarn_beta_fast"},
    {"--lora",
     "",
     "FILES",
     "",
     "LoRA adapters, by commas",
     a_text,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         return add_adapters(options, text, false);
     }},
    {"--lora-scaled",
     "",
     "FILE:SCALE",
     "",
     "the same with a scale",
     a_text,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         return add_adapters(options, text, true);
     }},
    {"--embedding --embeddings",           "",       "",          "LLAMA_ARG_EMBEDDINGS",
     "the model turns texts into vectors", a_switch, "embeddings"},
    {"--rerank --reranking",
     "",
     "",
     "LLAMA_ARG_RERANKING",
     "the model ranks documents",
     a_switch,
     "",
     [](ServeOptions& options, const std::string&) -> Status {
         options.parameters.set("embeddings", true);
         options.parameters.set("pooling", "rank");
         return success();
     }},
    {"--embed",
     "",
     "FILE",
     "",
     "a GGUF file or a graph (.hrg) beside --model, or without it, which turns texts into vectors",
     a_text,
     "",
     set_text<&ServeOptions::embedding_model>},
    {"--rank",
     "",
     "FILE",
     "",
     "a GGUF file or a graph (.hrg) beside --model, or without it, which ranks documents",
     a_text,
     "",
     set_text<&ServeOptions::ranking_model>},
    {"--tokenizer",
     "",
     "FILE",
     "",
     "tokenizer.json of the graph of --embed, or else of --rank; unset: the one in its folder",
     a_text,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         options.encoder.tokenizer = text;
         return success();
     }},
    {"--pooling", "", "KIND", "LLAMA_ARG_POOLING", "none, mean, cls, last or rank", a_text, "pooling"},
    {"--embd-normalize", "", "N", "", "of vectors: -1 none, 2 Euclidean", a_number, "embd_normalize"},

    // Drafts.
    {"-md --model-draft --spec-draft-model",
     "",
     "FILE",
     "LLAMA_ARG_SPEC_DRAFT_MODEL",
     "a smaller model that drafts",
     a_text,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         options.parameters.set("draft_model", text);
         options.parameters.set("speculative", true);
         return success();
     }},
    {"--spec-type", "", "KIND",          "LLAMA_ARG_SPEC_TYPE", "none, draft-simple or ngram-simple",
     a_text,        "", read_speculation},
    {"--spec-draft-n-max", "", "N", "LLAMA_ARG_SPEC_DRAFT_N_MAX", "tokens of a draft", a_number, "draft_max"},
    {"-ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl",
     "",
     "N",
     "LLAMA_ARG_N_GPU_LAYERS_DRAFT",
     "the draft model's layers on the GPU",
     a_text,
     "draft_gpu_layers"},
    {"--spec-ngram-simple-size-n", "", "N", "", "tokens that must repeat", a_number, "ngram_size"},

    // Chats.
    {"--chat-template",
     "",
     "TEMPLATE",
     "LLAMA_ARG_CHAT_TEMPLATE",
     "Jinja, or the name of a known one",
     a_text,
     "chat_template"},
    {"--chat-template-file",
     "",
     "FILE",
     "LLAMA_ARG_CHAT_TEMPLATE_FILE",
     "the same from a file",
     a_text,
     "",
     [](ServeOptions& options, const std::string& path) -> Status {
         HR_ASSIGN(std::string source, file_text(path));
         options.parameters.set("chat_template", std::move(source));
         return success();
     }},
    {"--chat-template-kwargs",
     "",
     "JSON",
     "LLAMA_ARG_CHAT_TEMPLATE_KWARGS",
     "values for the template",
     some_json,
     "chat_template_kwargs"},
    {"--jinja", "--no-jinja", "", "LLAMA_ARG_JINJA", "render the template by Jinja (default)",
     a_switch,  "jinja"},
    {"--reasoning-format", "", "FORMAT", "LLAMA_ARG_THINK", "none, auto, deepseek or deepseek-legacy", a_text,
     "reasoning_format"},
    {"-rea --reasoning", "", "on|off|auto", "LLAMA_ARG_REASONING", "let the model think first", a_text, "",
     read_reasoning},
    {"--reasoning-effort",      "",     "LEVEL",           "LLAMA_ARG_REASONING_EFFORT",
     "a word for the template", a_text, "reasoning_effort"},
    {"--reasoning-budget", "", "N", "LLAMA_ARG_THINK_BUDGET", "tokens of thoughts at most", a_number,
     "reasoning_budget"},
    {"--reasoning-budget-message",
     "",
     "TEXT",
     "LLAMA_ARG_THINK_BUDGET_MESSAGE",
     "what ends thoughts that reach it",
     a_text,
     "reasoning_budget_message"},
    {"--cache-prompt", "--no-cache-prompt", "", "LLAMA_ARG_CACHE_PROMPT", "remember prompts",
     a_switch,         "cache_prompt"},
    {"--max-waiting", "", "N", "", "requests that may wait; more get 503", a_number, "max_waiting"},
    {"--request-timeout-ms", "", "N", "", "for a request, waiting included", a_number, "timeout_ms"},

    // Sampling.
    {"-n --predict --n-predict",
     "",
     "N",
     "LLAMA_ARG_N_PREDICT",
     "tokens of an answer, unless the request says",
     a_number,
     "n_predict"},
    {"--keep", "", "N", "", "tokens that a context shift keeps", a_number, "n_keep"},
    {"-s --seed", "", "N", "", "-1: another each time", a_number, "seed"},
    {"--temp --temperature", "", "N", "LLAMA_ARG_TEMPERATURE", "", a_number, "temperature"},
    {"--top-k", "", "N", "LLAMA_ARG_TOP_K", "", a_number, "top_k"},
    {"--top-p", "", "N", "LLAMA_ARG_TOP_P", "", a_number, "top_p"},
    {"--min-p", "", "N", "LLAMA_ARG_MIN_P", "", a_number, "min_p"},
    {"--top-nsigma --top-n-sigma", "", "N", "", "", a_number, "top_n_sigma"},
    {"--typical --typical-p", "", "N", "", "", a_number, "typical_p"},
    {"--xtc-probability", "", "N", "", "", a_number, "xtc_probability"},
    {"--xtc-threshold", "", "N", "", "", a_number, "xtc_threshold"},
    {"--repeat-last-n", "", "N", "", "", a_number, "repeat_last_n"},
    {"--repeat-penalty", "", "N", "LLAMA_ARG_REPEAT_PENALTY", "", a_number, "repeat_penalty"},
    {"--presence-penalty", "", "N", "LLAMA_ARG_PRESENCE_PENALTY", "", a_number, "presence_penalty"},
    {"--frequency-penalty", "", "N", "LLAMA_ARG_FREQUENCY_PENALTY", "", a_number, "frequency_penalty"},
    {"--dry-multiplier", "", "N", "", "", a_number, "dry_multiplier"},
    {"--dry-base", "", "N", "", "", a_number, "dry_base"},
    {"--dry-allowed-length", "", "N", "", "", a_number, "dry_allowed_length"},
    {"--dry-penalty-last-n", "", "N", "", "", a_number, "dry_penalty_last_n"},
    {"--adaptive-target", "", "N", "", "", a_number, "adaptive_target"},
    {"--adaptive-decay", "", "N", "", "", a_number, "adaptive_decay"},
    {"--dynatemp-range", "", "N", "", "", a_number, "dynatemp_range"},
    {"--dynatemp-exp", "", "N", "", "", a_number, "dynatemp_exponent"},
    {"--mirostat", "", "N", "", "", a_number, "mirostat"},
    {"--mirostat-lr", "", "N", "", "", a_number, "mirostat_eta"},
    {"--mirostat-ent", "", "N", "", "", a_number, "mirostat_tau"},
    {"--ignore-eos", "", "", "", "", a_switch, "ignore_eos"},
    {"-sp --special", "", "", "", "control tokens show", a_switch, "special"},
    {"--samplers",
     "",
     "NAMES",
     "",
     "by semicolons",
     a_text,
     "",
     [](ServeOptions& options, const std::string& text) -> Status {
         std::vector<ParameterValue> names;
         for (const std::string& name : parts_of(text, ';')) names.emplace_back(name);
         options.parameters.set("samplers", std::move(names));
         return success();
     }},
    {"--sampler-seq --sampling-seq", "", "LETTERS", "", "", a_text, "samplers"},
    {"--grammar", "", "GBNF", "", "of every answer", a_text, "grammar"},
    {"-j --json-schema", "", "JSON", "", "of every answer", some_json, "json_schema"},
    {"-r --reverse-prompt", "", "TEXT", "", "ends every answer", a_text, "stop"},

    // llama-server's, without a meaning here.
    {"-cb --cont-batching",     "-nocb --no-cont-batching",      "",
     "LLAMA_ARG_CONT_BATCHING", "requests always share batches", is_ignored},
    {"--warmup", "--no-warmup", "", "", "there is no warm-up", is_ignored},
    {"--offline", "", "", "LLAMA_ARG_OFFLINE", "nothing is ever downloaded", is_ignored},
    {"-bs --backend-sampling",       "",        "", "LLAMA_ARG_BACKEND_SAMPLING",
     "tokens are chosen on the CPU", is_ignored},
    {"--cache-idle-slots",
     "--no-cache-idle-slots",
     "",
     "LLAMA_ARG_CACHE_IDLE_SLOTS",
     "prompts are remembered in any case",
     is_ignored},
    {"--prefill-assistant", "", "", "LLAMA_ARG_PREFILL_ASSISTANT", "it always goes on", is_ignored},
    {"--perf", "--no-perf", "", "LLAMA_ARG_PERF", "answers always have their times", is_ignored},
    {"--poll", "", "N", "", "threads sleep between steps", is_ignored},
    {"--prio", "", "N", "", "the system's nice does that", is_ignored},
    {"-sps --slot-prompt-similarity",
     "",
     "N",
     "",
     "prompts share whatever they begin with alike",
     is_ignored},
    {"-lv --verbosity --log-verbosity", "",        "N", "LLAMA_ARG_LOG_VERBOSITY",
     "see --verbose and --log-disable", is_ignored},
    {"--log-colors", "", "WHEN", "LLAMA_ARG_LOG_COLORS", "the log has none", is_ignored},
    {"--log-prefix", "--no-log-prefix", "", "LLAMA_ARG_LOG_PREFIX", "lines of the log are as they are",
     is_ignored},
    {"--log-timestamps",
     "--no-log-timestamps",
     "",
     "LLAMA_ARG_LOG_TIMESTAMPS",
     "lines of the log are as they are",
     is_ignored},
    {"-fit --fit", "", "on|off", "LLAMA_ARG_FIT", "layers are always fitted to the devices", is_ignored},
    {"--threads-http", "", "N", "LLAMA_ARG_THREADS_HTTP", "each connection has a thread: --max-connections",
     is_ignored},
    {"--no-mmproj --no-mmproj-auto", "", "", "", kNoMedia, is_ignored},
    {"-ctxcp --ctx-checkpoints --swa-checkpoints",  "",        "N", "LLAMA_ARG_CTX_CHECKPOINTS",
     "remembered prompts stand in for checkpoints", is_ignored},
    {"--cache-reuse", "", "N", "LLAMA_ARG_CACHE_REUSE", "prompts share their common start", is_ignored},
    {"-hf -hfr --hf-repo", "", "REPO", "LLAMA_ARG_HF_REPO", kNoDownloads, is_refused},
    {"-hff --hf-file", "", "FILE", "LLAMA_ARG_HF_FILE", kNoDownloads, is_refused},
    {"-mu --model-url", "", "URL", "LLAMA_ARG_MODEL_URL", kNoDownloads, is_refused},
    {"-dr --docker-repo", "", "REPO", "LLAMA_ARG_DOCKER_REPO", kNoDownloads, is_refused},
    {"-hft --hf-token", "", "TOKEN", "HF_TOKEN", kNoDownloads, is_ignored},
    {"-mm --mmproj", "", "FILE", "LLAMA_ARG_MMPROJ", kNoMedia, is_refused},
    {"-mmu --mmproj-url", "", "URL", "LLAMA_ARG_MMPROJ_URL", kNoMedia, is_refused},
    {"--media-path", "", "FOLDER", "", kNoMedia, is_refused},
    {"--tools", "", "TOOLS", "LLAMA_ARG_TOOLS", kNoHostTools, is_refused},
    {"-ag --agent", "", "", "LLAMA_ARG_AGENT", kNoHostTools, is_refused},
    {"--mcp-servers-config", "", "FILE", "LLAMA_ARG_MCP_SERVERS_CONFIG", kNoHostTools, is_refused},
    {"--models-dir", "", "FOLDER", "LLAMA_ARG_MODELS_DIR", kOneModel, is_refused},
    {"--models-preset", "", "FILE", "LLAMA_ARG_MODELS_PRESET", kOneModel, is_refused},
    {"--path", "", "FOLDER", "LLAMA_ARG_STATIC_PATH", "no files of this machine are served", is_refused},
    {"--ssl-key-file", "", "FILE", "LLAMA_ARG_SSL_KEY_FILE", "put a proxy that speaks TLS in front",
     is_refused},
    {"--ssl-cert-file", "", "FILE", "LLAMA_ARG_SSL_CERT_FILE", "put a proxy that speaks TLS in front",
     is_refused},
    {"-ot --override-tensor",
     "",
     "PATTERN",
     "LLAMA_ARG_OVERRIDE_TENSOR",
     "tensors go where their layers go",
     is_refused},
    {"--control-vector", "", "FILE", "", "there are none here", is_refused},
    {"--control-vector-scaled", "", "FILE:SCALE", "", "there are none here", is_refused},
    {"-e --escape", "--no-escape", "", "", "there is no --prompt here", is_ignored},
}
;

}  // namespace

std::span<const Flag> flags() { return kFlags; }

}  // namespace headrace::serve
