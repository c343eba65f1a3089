#include "llm/log/llama_log.h"

#include <common/log.h>
#include <ggml.h>
#include <llama.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "llm/log/log.h"
#include "llm/log/log_line.h"
#include "remote/host.h"

namespace headrace::llm {
namespace {

thread_local bool errors_are_expected = false;
thread_local std::string errors;  // since take_llama_errors
constexpr std::size_t kMaxErrors = 1024;

LogLevel level_of(ggml_log_level level) {
    switch (level) {
        case GGML_LOG_LEVEL_DEBUG: return LogLevel::debug;
        case GGML_LOG_LEVEL_WARN: return LogLevel::warn;
        case GGML_LOG_LEVEL_ERROR: return LogLevel::error;
        default: return LogLevel::info;
    }
}

/// llama.cpp says about a hundred things at its level info when it loads a model: details, here.
bool is_wanted(LogLevel level) {
    return log_enabled(level) && (level >= LogLevel::warn || log_enabled(LogLevel::debug));
}

/// One thread's messages, which come in pieces: those of the level CONT go on with the piece before.
class Pieces {
public:
    ~Pieces() { end_line(); }

    void take(ggml_log_level level, std::string_view text) {
        if (level != GGML_LOG_LEVEL_CONT) {
            end_line();
            level_ = errors_are_expected ? LogLevel::debug : level_of(level);
        }
        if (level_ != LogLevel::error && !is_wanted(level_)) return;
        while (!text.empty()) {
            const std::size_t end = text.find('\n');
            line_ += text.substr(0, end);
            if (end == std::string_view::npos) break;
            end_line();
            text.remove_prefix(end + 1);
        }
        if (line_.size() > kMaxLogMessage) end_line();
    }

private:
    void end_line() {
        if (line_.empty()) return;
        line_ = remote::with_host_names(std::move(line_));
        if (level_ == LogLevel::error && errors.size() < kMaxErrors)
            errors += (errors.empty() ? "" : "; ") + line_;
        if (is_wanted(level_)) log(level_, line_);
        line_.clear();
    }

    LogLevel level_ = LogLevel::info;
    std::string line_;
};

void take_piece(ggml_log_level level, const char* text, void*) {
    static thread_local Pieces pieces;
    if (text) pieces.take(level, text);
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
