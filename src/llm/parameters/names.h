#pragma once
#include "llm/parameters/table.h"

namespace headrace::llm {

/// The parts of a key, in the one spelling that names are compared in: "Dynatemp-Range" and "dynatemp_range"
/// are the same, a dot is a level of nesting.
std::vector<std::string> key_parts(std::string_view key);

/// The row that nested keys name, or null. Sections in front are optional: sampling.dynatemp.range,
/// dynatemp.range, dynatemp_range and sampling.dynatemp_range are one.
const Row* find_row(std::span<const std::string> parts);

/// The row of a key that may stand without the group it belongs to in configurations of other backends:
/// {"level": "debug"} for {"logging": {"level": "debug"}}. Names as general as these are no names elsewhere.
const Row* find_row_of_group(std::span<const std::string> parts);

/// Whether an object under these keys holds parameters.
bool is_section(std::span<const std::string> parts);

/// The known name that is most like an unknown one, among what `level` may set, and, for an object, among the
/// sections; empty if none is.
std::string suggestion(std::span<const std::string> parts, Level level, bool is_object);

/// Names that two rows claim: faults of the table.
std::vector<std::string> ambiguous_names();

}  // namespace headrace::llm
