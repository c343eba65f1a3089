#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/notes.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Where a JSON text comes from. Each level may set its own parameters and the defaults of those below it.
enum class Level { service, model, session, request };

/// The settings with those of a JSON object on top. Flat names, nested sections and kebab-case are taken;
/// null is absent. Errors name the parameter, its value and what would be right: a value of a wrong type or
/// outside a range that is not clamped, parameters that exclude each other, text that is no JSON object. What
/// is clamped, not known
/// ("did you mean") or of another level is a note.
Result<Settings> with_parameters(const Settings& base, std::string_view json, Level level, Notes& notes);

/// Applies the rules that need the model's numbers, such as a batch that is no larger than the context.
Status adjust(Settings& settings, int n_ctx, int n_vocab, Notes& notes);

/// docs/parameters.md: every row of the table by section.
std::string parameters_page();

}  // namespace headrace::llm
