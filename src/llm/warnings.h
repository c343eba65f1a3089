#pragma once
#include <vector>

#include "headrace/language_model.h"

namespace headrace::llm {

/// What was done with parameters other than taking them as they are: clamped, adjusted to others, not known,
/// ignored.
using Warnings = std::vector<Warning>;

}  // namespace headrace::llm
