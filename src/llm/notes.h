#pragma once
#include <vector>

#include "headrace/language_model.h"

namespace headrace::llm {

/// What was done with a parameter other than taking it as it is: clamped, adjusted to others, not known,
/// ignored.
using Note = Warning;
using Notes = std::vector<Note>;

}  // namespace headrace::llm
