#pragma once
#include <ggml.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/log.h"

namespace headrace {

/// The level of a piece of ggml's log; none for one that continues the piece before.
std::optional<LogLevel> log_level_of(ggml_log_level level);

/// One thread's messages of ggml or llama.cpp, which come in pieces, as lines.
class GgmlLines {
public:
    /// say gets each line without its newline.
    explicit GgmlLines(void (*say)(LogLevel, std::string line)) : say_(say) {}
    ~GgmlLines() { end_line(); }
    GgmlLines(const GgmlLines&) = delete;
    GgmlLines& operator=(const GgmlLines&) = delete;

    void take(std::optional<LogLevel> level, std::string_view text);

private:
    void end_line();

    void (*say_)(LogLevel, std::string line);
    LogLevel level_ = LogLevel::info;
    std::string line_;
};

/// Puts ggml's warnings and errors into the log, where nobody has set a callback of their own. By itself ggml
/// writes all that it has to say to stderr, as CUDA's backend does about each run.
void capture_ggml_log();

}  // namespace headrace
