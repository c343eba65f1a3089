#include "llm/log/llama_log.h"

#include <common/log.h>
#include <ggml.h>
#include <llama.h>

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "loading/ggml_log.h"
#include "remote/host.h"

namespace headrace::llm {
namespace {

thread_local bool errors_are_expected = false;
thread_local std::string errors;  // since take_llama_errors
constexpr std::size_t kMaxErrors = 1024;

/// llama.cpp says about a hundred things at its level info when it loads a model: details, here.
bool is_wanted(LogLevel level) {
    return log_enabled(level) && (level >= LogLevel::warn || log_enabled(LogLevel::debug));
}

void say(LogLevel level, std::string line) {
    line = remote::with_host_names(std::move(line));
    if (level == LogLevel::error && errors.size() < kMaxErrors) errors += (errors.empty() ? "" : "; ") + line;
    if (is_wanted(level)) log(level, line);
}

void take_piece(ggml_log_level level, const char* text, void*) {
    static thread_local GgmlLines lines(say);
    std::optional<LogLevel> ours = log_level_of(level);
    if (ours && errors_are_expected) ours = LogLevel::debug;
    if (text) lines.take(ours, text);
}

}  // namespace

void expect_llama_errors(bool expected) { errors_are_expected = expected; }

std::string take_llama_errors() { return std::exchange(errors, {}); }

ggml_log_callback llama_log_callback() { return take_piece; }

void capture_llama_log() {
    static std::once_flag once;
    std::call_once(once, [] {
        llama_log_set(take_piece, nullptr);
        common_log_set_verbosity_thold(LOG_LEVEL_OUTPUT - 1);
    });
}

}  // namespace headrace::llm
