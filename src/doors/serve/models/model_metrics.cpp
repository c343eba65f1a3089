#include <fmt/format.h>

#include "doors/serve/models/model_record.h"

namespace headrace::serve {
namespace {

struct Count {
    std::string_view name, type, help;
    double (*value)(const LanguageModelStatistics&);
};

template <auto Member>
double count_of(const LanguageModelStatistics& statistics) {
    return static_cast<double>(statistics.*Member);
}

using S = LanguageModelStatistics;

template <auto Member>
double seconds_of(const S& statistics) {
    return statistics.*Member / 1e3;
}

double per_second(std::uint64_t count, double ms) {
    return ms > 0 ? static_cast<double>(count) / ms * 1e3 : 0;
}

const Count kCounts[] = {
    {"headrace_requests_total", "counter", "requests that the engine took", count_of<&S::submitted>},
    {"headrace_requests_finished_total", "counter", "requests that ended by themselves",
     count_of<&S::finished>},
    {"headrace_requests_failed_total", "counter", "requests that failed", count_of<&S::failed>},
    {"headrace_requests_cancelled_total", "counter", "requests whose client went away",
     count_of<&S::cancelled>},
    {"headrace_requests_rejected_total", "counter", "requests that found the queue full",
     count_of<&S::rejected>},
    {"headrace_requests_running", "gauge", "requests that run", count_of<&S::running>},
    {"headrace_requests_waiting", "gauge", "requests that wait", count_of<&S::waiting>},
    {"headrace_prompt_tokens_total", "counter", "tokens of prompts that were read",
     count_of<&S::prompt_tokens>},
    {"headrace_cached_tokens_total", "counter", "tokens of prompts that were remembered",
     count_of<&S::cached_tokens>},
    {"headrace_generated_tokens_total", "counter", "tokens that were chosen", count_of<&S::generated_tokens>},
    {"headrace_drafted_tokens_total", "counter", "tokens that were drafted", count_of<&S::drafted_tokens>},
    {"headrace_accepted_tokens_total", "counter", "drafted tokens that were right",
     count_of<&S::accepted_tokens>},
    {"headrace_steps_total", "counter", "batches that were computed", count_of<&S::steps>},
    {"headrace_pauses_total", "counter", "times that a higher priority went first", count_of<&S::pauses>},
    {"headrace_evictions_total", "counter", "remembered prompts that were forgotten for room",
     count_of<&S::evictions>},
    {"headrace_remembered_tokens", "gauge", "tokens of idle sequences", count_of<&S::remembered_tokens>},
    {"headrace_ram_cache_bytes", "gauge", "prompts that were moved out of the context",
     count_of<&S::ram_cache_bytes>},
    {"headrace_disk_cached_tokens_total", "counter", "tokens of prompts that came from the cache on disk",
     count_of<&S::disk_cached_tokens>},
    {"headrace_disk_written_tokens_total", "counter", "tokens that were written there",
     count_of<&S::disk_written_tokens>},
    {"headrace_disk_cache_failures_total", "counter", "reads and writes of it that failed",
     count_of<&S::disk_failures>},
    {"headrace_disk_cache_bytes", "gauge", "of its folder", count_of<&S::disk_cache_bytes>},
    {"headrace_resident_bytes", "gauge", "memory of the process", count_of<&S::process_resident_bytes>},
    // llama-server's, for dashboards that have them.
    {"llamacpp:prompt_tokens_total", "counter", "Number of prompt tokens processed.",
     count_of<&S::prompt_tokens>},
    {"llamacpp:prompt_tokens_cached_total", "counter", "Number of prompt tokens reused from the cache.",
     count_of<&S::cached_tokens>},
    {"llamacpp:tokens_predicted_total", "counter", "Number of generation tokens processed.",
     count_of<&S::generated_tokens>},
    {"llamacpp:prompt_seconds_total", "counter", "Prompt process time in seconds.",
     seconds_of<&S::prompt_ms>},
    {"llamacpp:prompt_tokens_seconds", "gauge", "Average prompt throughput in tokens/s.",
     [](const S& s) { return per_second(s.prompt_tokens, s.prompt_ms); }},
    {"llamacpp:tokens_predicted_seconds_total", "counter", "Predict process time in seconds.",
     seconds_of<&S::decode_ms>},
    {"llamacpp:predicted_tokens_seconds", "gauge", "Average generation throughput in tokens/s.",
     [](const S& s) { return per_second(s.generated_tokens, s.decode_ms); }},
    {"llamacpp:n_tokens_max", "counter", "High watermark of the context size observed.",
     count_of<&S::longest_request>},
    {"llamacpp:n_decode_total", "counter", "Total number of llama_decode() calls", count_of<&S::steps>},
    {"llamacpp:n_busy_slots_per_decode", "gauge", "Average number of busy slots per llama_decode() call.",
     [](const S& s) {
         return s.steps > 0 ? static_cast<double>(s.stream_steps) / static_cast<double>(s.steps) : 0;
     }},
    {"llamacpp:spec_decode_num_draft_tokens_total", "counter", "Total draft tokens generated.",
     count_of<&S::drafted_tokens>},
    {"llamacpp:spec_decode_num_accepted_tokens_total", "counter",
     "Total draft tokens accepted by the target model.", count_of<&S::accepted_tokens>},
    {"llamacpp:spec_decode_num_drafts_total", "counter", "Total speculative decoding verification steps.",
     count_of<&S::drafts>},
    {"llamacpp:requests_processing", "gauge", "Number of requests processing.", count_of<&S::running>},
    {"llamacpp:requests_deferred", "gauge", "Number of requests deferred.", count_of<&S::waiting>},
};

struct Times {
    std::string_view name, help;
    const Histogram ModelMetrics::*histogram;
};
const Times kTimes[] = {
    {"headrace_time_to_first_token_seconds", "from a request to its first token", &ModelMetrics::first_token},
    {"headrace_time_between_tokens_seconds", "between tokens of an answer", &ModelMetrics::between_tokens},
    {"headrace_queue_seconds", "from a request to its first step", &ModelMetrics::queue},
    {"headrace_request_seconds", "from a request to its end", &ModelMetrics::whole},
};

/// llama-server has it of its only model, and nothing before there are drafts.
void write_accepted(std::string& out, const LanguageModelStatistics& statistics) {
    constexpr std::string_view kName = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total";
    if (statistics.accepted_at.empty()) return;
    write_header(out, kName, "counter", "Accepted tokens per draft position.");
    for (std::size_t place = 0; place < statistics.accepted_at.size(); ++place)
        write_sample(out, kName, fmt::format("position=\"{}\"", place),
                     static_cast<double>(statistics.accepted_at[place]));
}

}  // namespace

std::string model_label(std::string_view id) {
    std::string escaped;
    for (const char c : id) {
        if (c == '"' || c == '\\') escaped += '\\';
        escaped += c == '\n' ? ' ' : c;
    }
    return fmt::format("model=\"{}\"", escaped);
}

void write_model_metrics(std::string& out, const std::vector<std::shared_ptr<LanguageRecord>>& models) {
    if (models.empty()) return;
    std::vector<std::pair<std::string, LanguageModelStatistics>> all;
    for (const auto& model : models) all.emplace_back(model_label(model->id()), model->statistics());
    for (const Count& count : kCounts) {
        write_header(out, count.name, count.type, count.help);
        // llama-server has one model, and no labels.
        if (count.name.starts_with("llamacpp:")) {
            write_sample(out, count.name, "", count.value(all.front().second));
            continue;
        }
        for (const auto& [label, statistics] : all)
            write_sample(out, count.name, label, count.value(statistics));
    }
    write_accepted(out, all.front().second);
    for (const Times& times : kTimes) {
        write_header(out, times.name, "histogram", times.help);
        for (std::size_t i = 0; i < models.size(); ++i)
            (models[i]->times.*times.histogram).write(out, times.name, all[i].first);
    }
}

}  // namespace headrace::serve
