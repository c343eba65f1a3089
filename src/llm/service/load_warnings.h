#pragma once
#include "llm/engine/registry.h"
#include "llm/notes.h"
#include "llm/settings.h"

namespace headrace::llm {

/// Notes what of a load's settings this machine or this kind of model does otherwise, or not at all.
void note_placement(const Runner& runner, const Settings& settings, Notes& notes);

/// Fits the settings to the engine's context and vocabulary. All changes are logged; the notes get those that
/// the defaults would not have had.
Status adjust_to(const Engine& engine, Settings& settings, Notes& notes);

}  // namespace headrace::llm
