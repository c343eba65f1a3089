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

void log_warnings(const Warnings& warnings, const LogContext& context) {
    for (const Warning& warning : warnings)
        HR_LOG(warn, context, "{}: {}", warning.parameter, warning.message);
}

}  // namespace headrace::llm
