#pragma once
#include <charconv>
#include <string>
#include <vector>

#include "doors/serve/options/options.h"

namespace headrace::serve {

// How the texts of flags become options. Errors do not name the flag: their reader puts it before them.

std::vector<std::string> parts_of(const std::string& text, char separator = ',');
Result<std::string> file_text(const std::string& path);

template <class Number>
Status read_number(const std::string& text, Number least, Number most, Number& value) {
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end || value < least || value > most)
        return invalid("'{}' must be a number from {} to {}", text, least, most);
    return success();
}

template <auto Member, auto least, auto most>
Status set_number(ServeOptions& options, const std::string& text) {
    auto& value = options.*Member;
    return read_number<std::remove_reference_t<decltype(value)>>(text, least, most, value);
}

template <auto Member, auto least, auto most>
Status set_listener_number(ServeOptions& options, const std::string& text) {
    auto& value = options.listener.*Member;
    return read_number<std::remove_reference_t<decltype(value)>>(text, least, most, value);
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

template <auto Member>
Status set_listener_switch(ServeOptions& options, const std::string& text) {
    options.listener.*Member = text == "true";
    return success();
}

/// A switch, which may be turned off: by its negative, or "off" in a file.
template <auto Member, bool Value = true>
Status set_switch(ServeOptions& options, const std::string& text) {
    options.*Member = (text == "true") == Value;
    return success();
}

/// The parameter n_ctx of a context that is as large as the model's training, as far as memory goes.
constexpr std::int64_t kWholeContext = 0;
/// n_ctx_per_request of a request that has as much of the context as every other.
constexpr std::int64_t kPartOfContext = -1;

Status read_listed_keys(ServeOptions& options, const std::string& text);
Status read_keys(ServeOptions& options, const std::string& text);
Status read_parallel(ServeOptions& options, const std::string& text);
Status read_reasoning(ServeOptions& options, const std::string& text);
Status read_speculation(ServeOptions& options, const std::string& text);
Status set_hosts(ServeOptions& options, const std::string& text);
Status set_body(ServeOptions& options, const std::string& text);
Status set_patience(ServeOptions& options, const std::string& text);
Status set_verbosity(ServeOptions& options, const std::string& text);
Status set_cpu_mask(ServeOptions& options, const std::string& text);
Status set_cpu_range(ServeOptions& options, const std::string& text);
Status set_prefix(ServeOptions& options, const std::string& text);
Status set_ping_interval(ServeOptions& options, const std::string& text);
Status set_idle_limit(ServeOptions& options, const std::string& text);

// Values of the model and its drafts.

/// Sets the parameter of that name; -1 and 0: as many as the engine chooses.
Status set_thread_count(ServeOptions& options, const std::string& text, const char* parameter);
template <const char* Parameter>
Status set_threads(ServeOptions& options, const std::string& text) {
    return set_thread_count(options, text, Parameter);
}
inline constexpr char kThreads[] = "n_threads", kThreadsBatch[] = "n_threads_batch";
inline constexpr char kDraftThreads[] = "draft_threads", kDraftThreadsBatch[] = "draft_threads_batch";

Result<std::vector<std::string>> device_names(const std::string& text);
template <auto Member>
Status add_devices(ServeOptions& options, const std::string& text) {
    HR_ASSIGN(const std::vector<std::string> names, device_names(text));
    (options.*Member).insert((options.*Member).end(), names.begin(), names.end());
    return success();
}
/// Patterns of experts' weights: of all layers, or of the first ones.
Result<std::vector<std::string>> expert_patterns(const std::string& layers);
template <auto Member>
Status keep_experts(ServeOptions& options, const std::string& text) {
    HR_ASSIGN(const std::vector<std::string> patterns, expert_patterns(text));
    (options.*Member).insert((options.*Member).end(), patterns.begin(), patterns.end());
    return success();
}
template <auto Member>
Status keep_all_experts(ServeOptions& options, const std::string& text) {
    return text == "true" ? keep_experts<Member>(options, "all") : success();
}
Status keep_feed_forward(ServeOptions& options, const std::string& text);
Status add_hosts(ServeOptions& options, const std::string& text);
Status set_context(ServeOptions& options, const std::string& text);
Status set_shares(ServeOptions& options, const std::string& text);
Status set_fit(ServeOptions& options, const std::string& text);
Status set_fit_target(ServeOptions& options, const std::string& text);
Status add_plain_adapters(ServeOptions& options, const std::string& text);
Status add_scaled_adapters(ServeOptions& options, const std::string& text);
Status set_ranking(ServeOptions& options, const std::string& text);
Status set_tokenizer(ServeOptions& options, const std::string& text);
Status set_precision(ServeOptions& options, const std::string& text);
Status set_draft_model(ServeOptions& options, const std::string& text);
Status read_template(ServeOptions& options, const std::string& text);

// Values of answers.

Status preserve_reasoning(ServeOptions& options, const std::string& text);
Status set_samplers(ServeOptions& options, const std::string& text);
Status add_bias(ServeOptions& options, const std::string& text);
Status add_breaker(ServeOptions& options, const std::string& text);
Status add_stop(ServeOptions& options, const std::string& text);
Status read_grammar(ServeOptions& options, const std::string& path);
Status read_schema(ServeOptions& options, const std::string& path);
/// In place of \n, \t, \", \x41 and the like what they stand for, as llama-server's --escape has it.
std::string unescaped(const std::string& text);

}  // namespace headrace::serve
