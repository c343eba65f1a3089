#include "llm/log/log_settings.h"

namespace headrace::llm {

LogSettings environment_log() {
    const LogEnvironment given = log_environment();
    LogSettings settings;
    settings.level = given.level;
    settings.format = given.format;
    settings.file = given.file;
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
