#include "llm/parameters/table.h"

namespace headrace::llm {
namespace {

constexpr Row ignored(std::string_view path, std::string_view names, std::string_view why) {
    return {Ignored{}, ParameterScope::answers, Level::request, path, names, "", why};
}

}  // namespace

std::span<const Row> ignored_rows() {
    static constexpr Row kRows[] = {
        ignored("ignored.input",
                "prompt messages input content input_prefix input_suffix input_extra query documents "
                "texts tokens",
                "the input is tensor 0"),
        ignored("ignored.model", "model_path model_alias model_name", "the load decides on the model"),
        ignored("ignored.output",
                "stream stream_stdout stream_options include_usage sse_ping_interval "
                "response_fields verbose encoding_format echo return_text with_pieces",
                "the call decides on the output: compute_single streams, get_output returns text at 0 and "
                "counts at 1"),
        ignored("ignored.slot", "id_slot slot_id", "sessions have names; the scheduler places them"),
        ignored("ignored.choices", "n_cmpl n best_of top_n", "a request has one answer"),
        ignored("ignored.cache",
                "kv_unified kv_unified_per_slot n_cache_reuse cache_reuse slot_prompt_similarity "
                "cache_idle_slots idle_slots slot_save_path ctx_checkpoints checkpoint_min_step "
                "cache_strategy cache_deletion_strategy max_cache_tokens enable_partial_cache_deletion "
                "max_memory_mb",
                "one cache is shared by exact prefix, the least recently used goes first; see cache.ram_mib "
                "and retention_ms"),
        ignored("ignored.scheduling",
                "batch_processing batch_timeout_ms priority_scheduling_enabled fair_scheduling_enabled "
                "auto_queue_cleanup",
                "requests are always batched, by priority and fairly"),
        ignored("ignored.queue", "queue_warning_threshold", "get_statistics tells how many wait"),
        ignored("ignored.chat",
                "chat_format chat_parser generation_prompt parse_tool_calls prefill_assistant "
                "skip_chat_parsing skip_parsing "
                "reasoning_budget_start_tag reasoning_budget_end_tag reasoning_budget_end_tags "
                "reasoning_control template_file chat_template_file",
                "the model's chat template or chat.template decides"),
        ignored("ignored.speculative", "speculative_type spec_type n_min p_min p_split draft_p_split",
                "drafts come from speculative.draft.model, or else from repeated n-grams"),
        ignored("ignored.loading", "fit fit_ctx control_vector control_vectors image warmup",
                "not offered: images come in messages, and models are placed by n_gpu_layers, devices and "
                "repack"),
        ignored("ignored.sampling", "backend_sampling",
                "sampling runs on the CPU, where every sampler and grammar can be had"),
        ignored("ignored.time", "t_max_prompt_ms", "scheduling.timeout_ms counts the prompt, too"),
        ignored("ignored.log", "timestamps colors enable_timestamps enable_colors enable_console",
                "logging.format decides on a line's looks"),
        ignored("ignored.server",
                "timeout threads_http sleep_idle_seconds api_key api_keys metrics slots host port "
                "filename",
                "there is no HTTP server here"),
    };
    return kRows;
}

}  // namespace headrace::llm
