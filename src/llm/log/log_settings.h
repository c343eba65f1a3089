#pragma once
#include "base/log.h"
#include "base/result.h"
#include "llm/settings.h"
#include "llm/warnings.h"

namespace headrace::llm {

/// The log where no configuration says anything of it.
LogSettings environment_log();

/// Makes the process's log what the settings say. After an error it is as it was.
Status set_log(const LogSettings& settings);

/// A line for each warning.
void log_warnings(const Warnings& warnings, const LogContext& context = {});

}  // namespace headrace::llm
