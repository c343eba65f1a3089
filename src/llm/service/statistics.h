#pragma once
#include "headrace/language_model.h"
#include "llm/service/model_slots.h"
#include "llm/service/sessions.h"

namespace headrace::llm {

/// What the model's engine or embedder has done and holds.
LanguageModelStatistics statistics_of(const LoadedModel& model);

/// Adds the numbers of sessions and of the process.
void add_process(LanguageModelStatistics& statistics, const Sessions& sessions);

}  // namespace headrace::llm
