#pragma once
#include "headrace/language_model.h"
#include "llm/service/model_slots.h"

namespace headrace::llm {

/// What the file and the load say of a model.
ModelInfo info_of(const LoadedModel& model);

}  // namespace headrace::llm
