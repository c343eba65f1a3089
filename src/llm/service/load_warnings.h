#pragma once
#include "llm/engine/registry.h"
#include "llm/settings.h"
#include "llm/warnings.h"

namespace headrace::llm {

/// Warns of what of a load's settings this machine or this kind of model does otherwise, or not at all.
void warn_of_placement(const Runner& runner, const Settings& settings, Warnings& warnings);

/// Fits the settings to the engine's context and vocabulary. All changes are logged; the warnings get those
/// that the defaults would not have had.
Status adjust_to(const Engine& engine, Settings& settings, Warnings& warnings);

}  // namespace headrace::llm
