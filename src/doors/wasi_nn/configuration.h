#pragma once
#include <string_view>

#include "base/result.h"
#include "llm/notes.h"
#include "llm/parameters/parameters.h"

namespace headrace::wasi_nn {

/// The settings with those of a guest's or a host's JSON text on top: see llm::with_parameters. Read
/// leniently, text that is no JSON object changes nothing, unless the settings are strict, and is a note.
Result<llm::Settings> with_configuration(const llm::Settings& base, std::string_view json, llm::Level level,
                                         llm::Notes& notes);

/// What replies say where a text that is no JSON leaves the defaults.
llm::Note defaults_note(const Error& error);

}  // namespace headrace::wasi_nn
