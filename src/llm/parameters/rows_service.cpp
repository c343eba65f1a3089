#include "llm/parameters/custom.h"

namespace headrace::llm {

// A WAMR guest's only configuration is that of its model, so sessions, the queue and the log's level can be
// set there, too. What reaches the host's files is the service's alone.

std::span<const Row> service_rows() {
    using enum Level;
    static const Row rows[] = {
        {"session.max_sessions", "max_sessions", model, "10", HR_SETTING(session.max_sessions),
         "named sessions; the least recently used idle one is closed for another", clamp(1, 10000)},
        {"session.max_concurrent", "max_concurrent", model, "2", HR_SETTING(session.max_concurrent),
         "anonymous contexts open at once", clamp(1, 10000)},
        {"session.idle_timeout_ms", "idle_timeout_ms session_timeout_ms", model, "1000",
         HR_SETTING(session.idle_timeout_ms), "an idle session is closed after that; 0 never",
         clamp_or_zero(100, kLongestMs)},
        {"session.auto_cleanup", "auto_cleanup auto_cleanup_enabled auto_cleanup_sessions", model, "false",
         HR_SETTING(session.auto_cleanup), "close idle sessions without being asked"},
        {"session.max_history", "max_history max_history_messages", session, "20",
         HR_SETTING(session.max_history), "messages kept of a conversation, besides the system's; 0 all",
         clamp(0)},
        {"queue.max_waiting", "max_waiting queue_size max_queue_size", model, "16",
         HR_SETTING(queue.max_waiting), "requests that may wait; more are told that the engine is busy",
         clamp(1, 1 << 20)},
        {"queue.reject_threshold", "queue_reject_threshold", model, "8", HR_SETTING(queue.reject_threshold),
         "max_waiting is lowered to it; 0 is off", clamp(0, 1 << 20)},
        {"queue.aging_ms", "aging_ms", model, "1000", HR_SETTING(queue.aging_ms),
         "a priority that got nothing for that long has its oldest request raised to the highest that waits",
         clamp(1, kLongestMs)},
        {"queue.step_target_ms", "step_target_ms", model, "50", HR_SETTING(queue.step_target_ms),
         "a step that others wait for should take no longer", clamp(1, kLongestMs)},
        {"logging.level",
         "log_level",
         model,
         R"("error")",
         HR_SETTING(log.level),
         "what is logged",
         {},
         "debug info warn error none",
         "trace=debug warning=warn fatal=error off=none"},
        {"logging.enable", "enable_log enable_logging", model, "false", kEnableLog,
         "true is the level info, false is error"},
        {"logging.enable_debug", "enable_debug_log enable_debug", model, "true", kEnableDebugLog,
         "true is the level debug"},
        {"logging.format",
         "log_format",
         model,
         R"("json")",
         HR_SETTING(log.format),
         "lines of text or of one JSON object",
         {},
         "text json",
         "plain=text structured=json"},
        {"logging.file", "log_file", service, R"("engine.log")", HR_SETTING(log.file),
         "appended to; empty: stderr"},
        {"service.model_root", "model_root", service, R"("/srv/models")", HR_SETTING(model_root),
         "the folder that model names are confined to"},
        {"service.model_aliases", "model_aliases", service, R"({"tiny": "/srv/tiny.gguf"})", kModelAliases,
         "names of models outside it"},
        {"service.guest_templates", "guest_templates", service, "true", HR_SETTING(guest_templates),
         "with a model_root: run chat templates that guests give, which may loop for ever, too"},
    };
    return rows;
}

std::span<const Row> ignored_rows() {
    using enum Level;
    static const Row rows[] = {
        {"ignored.input",
         "prompt messages input content input_prefix input_suffix input_extra query documents texts tokens",
         request, "", Ignored{}, "the input is tensor 0"},
        {"ignored.model", "model_path model_alias model_name", request, "", Ignored{},
         "the graph decides on the model"},
        {"ignored.output",
         "stream stream_stdout stream_options include_usage return_progress sse_ping_interval "
         "response_fields verbose "
         "encoding_format echo return_text with_pieces",
         request, "", Ignored{},
         "the call decides on the output: compute_single streams, get_output returns text at 0 and counts at "
         "1"},
        {"ignored.slot", "id_slot slot_id", request, "", Ignored{},
         "sessions have names; the scheduler places them"},
        {"ignored.choices", "n_cmpl n best_of top_n", request, "", Ignored{}, "a request has one answer"},
        {"ignored.cache",
         "kv_unified kv_unified_per_slot n_cache_reuse cache_reuse slot_prompt_similarity cache_idle_slots "
         "idle_slots "
         "slot_save_path ctx_checkpoints checkpoint_min_step cache_strategy cache_deletion_strategy "
         "max_cache_tokens "
         "enable_partial_cache_deletion max_memory_mb",
         request, "", Ignored{},
         "one cache is shared by exact prefix, the least recently used goes first; see cache.ram_mib and "
         "retention_ms"},
        {"ignored.scheduling",
         "batch_processing batch_timeout_ms priority_scheduling_enabled fair_scheduling_enabled "
         "auto_queue_cleanup",
         request, "", Ignored{}, "requests are always batched, by priority and fairly"},
        {"ignored.queue", "queue_warning_threshold", request, "", Ignored{},
         "get_statistics tells how many wait"},
        {"ignored.chat",
         "chat_format chat_parser generation_prompt parse_tool_calls add_generation_prompt "
         "continue_final_message "
         "prefill_assistant skip_chat_parsing skip_parsing reasoning_budget_start_tag "
         "reasoning_budget_end_tag "
         "reasoning_budget_end_tags reasoning_control template_file chat_template_file",
         request, "", Ignored{}, "the model's chat template or chat.template decides"},
        {"ignored.speculative",
         "speculative_type spec_type draft_min n_min p_min p_split draft_p_min draft_p_split", request, "",
         Ignored{}, "drafts come from speculative.draft.model, or else from repeated n-grams"},
        {"ignored.loading",
         "lazy_mode no_host override_tensor fit fit_ctx control_vector control_vectors numa mmproj image "
         "warmup",
         request, "", Ignored{},
         "not offered: models are text-only and placed by n_gpu_layers, devices and repack"},
        {"ignored.sampling", "backend_sampling", request, "", Ignored{},
         "sampling runs on the CPU, where every sampler and grammar can be had"},
        {"ignored.time", "t_max_prompt_ms", request, "", Ignored{},
         "scheduling.timeout_ms counts the prompt, too"},
        {"ignored.log", "timestamps colors enable_timestamps enable_colors enable_console", request, "",
         Ignored{}, "logging.format decides on a line's looks"},
        {"ignored.server",
         "timeout threads_http sleep_idle_seconds api_key api_keys metrics slots host port filename", request,
         "", Ignored{}, "there is no HTTP server here"},
    };
    return rows;
}

const std::vector<const Row*>& parameter_rows() {
    static const std::vector<const Row*> all = [] {
        std::vector<const Row*> rows;
        for (auto part : {sampling_rows(), request_rows(), model_rows(), service_rows(), ignored_rows()})
            for (const Row& row : part) rows.push_back(&row);
        return rows;
    }();
    return all;
}

}  // namespace headrace::llm
