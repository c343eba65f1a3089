#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "llm/settings.h"
#include "llm/warnings.h"

namespace headrace::llm {

/// Where a JSON text comes from. Each level may set its own parameters and the defaults of those below it.
enum class Level { service, model, session, request };

std::string_view level_name(Level level);

/// The settings with those of a JSON object on top; blank text is an empty object. Flat names, nested
/// sections and kebab-case are taken; null is absent. Errors name the parameter, its value and what would be
/// right: a value of a wrong type or outside a range that is not clamped, parameters that exclude each other,
/// text that is no JSON object. What is clamped, adjusted to another parameter, not known ("did you mean"),
/// without effect or of another level is a warning; `strict` makes clamped, unknown and misplaced parameters
/// errors. After an error the warnings are as before.
///
/// With base.lenient a number outside its range is moved to the range's end, a value that cannot be taken or
/// goes with no other is left out, and each is a warning; only what confines callers (`service`), and what a
/// `strict` in the text makes one, is an error. grammar_triggers may be {"enabled", "patterns"}, and the keys
/// of a group may stand without it.
Result<Settings> with_parameters(const Settings& base, std::string_view json, Level level,
                                 Warnings& warnings);
/// The same of parameters in place of a text.
Result<Settings> with_parameters(const Settings& base, const Parameters& parameters, Level level,
                                 Warnings& warnings);

/// All parameters of a request, by their first names.
Parameters request_parameters(const Settings& settings);

/// The rules that need a loaded model's numbers: the tokens of a sequence's context and of the vocabulary.
/// Values that cannot be are changed, with a warning; a token of a grammar trigger that does not exist is an
/// error.
Status adjust(Settings& settings, int n_ctx, int n_vocab, Warnings& warnings);

/// The default of the parameter of that name as text; empty where it is no number, word or truth value.
std::string parameter_default(std::string_view name);

/// docs/parameters.md: every row of the table by section.
std::string parameters_page();

}  // namespace headrace::llm
