#pragma once
#include <cstdint>
#include <vector>

#include "doors/serve/models/served_model.h"

namespace headrace::serve {

/// Whether a model's vocabulary has the marks of a text with a gap.
bool can_fill_middle(const ModelInfo& info);

/// A text with a gap, as tokens without any marks.
struct Gap {
    std::vector<std::int32_t> before;  ///< what other files hold
    std::vector<std::int32_t> prefix, suffix;
};
/// What a model reads of it. suffix_first: as some models prefer it.
std::vector<std::int32_t> gap_tokens(ServedModel& model, const Gap& gap, bool suffix_first);

}  // namespace headrace::serve
