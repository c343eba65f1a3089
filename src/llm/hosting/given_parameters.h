#pragma once
#include "base/result.h"
#include "headrace/hosted_models.h"
#include "llm/parameters/parameters.h"
#include "llm/warnings.h"

namespace headrace::llm {

/// The settings with those that somebody gave on top: see with_parameters. Read leniently, a text that is no
/// JSON object changes nothing, unless the settings are strict, and is a warning.
Result<Settings> with_given(const Settings& base, const GivenParameters& given, Level level,
                            Warnings& warnings);

}  // namespace headrace::llm
