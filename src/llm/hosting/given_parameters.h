#pragma once
#include "base/result.h"
#include "headrace/hosted_models.h"
#include "llm/notes.h"
#include "llm/parameters/parameters.h"

namespace headrace::llm {

/// The settings with those that somebody gave on top: see with_parameters. Read leniently, a text that is no
/// JSON object changes nothing, unless the settings are strict, and is a note.
Result<Settings> with_given(const Settings& base, const GivenParameters& given, Level level, Notes& notes);

}  // namespace headrace::llm
