#include "llm/log/log_settings.h"

#include <cstdlib>

namespace headrace::llm {

LogSettings environment_log() {
    LogSettings settings;
    const char* level = std::getenv("HEADRACE_LOG");
    if (level && parse_log_level(level).ok()) settings.level = level;
    return settings;
}

Status set_log(const LogSettings& settings) {
    HR_ASSIGN(const LogLevel level, parse_log_level(settings.level));
    return set_log(level, settings.format, settings.file);
}

void log_notes(const Notes& notes, const LogContext& context) {
    for (const Note& note : notes) HR_LOG(warn, context, "{}: {}", note.parameter, note.message);
}

}  // namespace headrace::llm
