#pragma once
#include "llm/parameters/table.h"

namespace headrace::llm {

// Parameters that are more than one plain field, by what they hold.

extern const Custom kSamplers, kLogitBias, kLogprobs;
extern const Custom kJsonSchema, kResponseFormat, kGrammarTriggers;
extern const Custom kSemanticStopping, kPriority, kChat;
extern const Custom kTemplateKwargs, kReasoningEffort, kTools, kPreviousMessages;
extern const Custom kLora, kKvOverrides, kUseMmap, kUseMlock, kRopeScale;
extern const Custom kModelAliases, kEnableLog, kEnableDebugLog;

}  // namespace headrace::llm
