#pragma once
#include "base/log.h"
#include "base/result.h"
#include "llm/notes.h"
#include "llm/settings.h"

namespace headrace::llm {

/// The log where no configuration says anything of it.
LogSettings environment_log();

/// Makes the process's log what the settings say. After an error it is as it was.
Status set_log(const LogSettings& settings);

/// A warning for each note.
void log_notes(const Notes& notes, const LogContext& context = {});

}  // namespace headrace::llm
