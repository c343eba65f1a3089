#pragma once
#include <optional>
#include <string_view>

#include "headrace/headrace.h"

/// Options of compile() as programs, Python and files spell them.
namespace headrace {

/// "exact" or "fast"; nothing for any other.
HEADRACE_API std::optional<Precision> find_precision(std::string_view name);
/// "normal" or "low"; nothing for any other.
HEADRACE_API std::optional<MemoryUse> find_memory_use(std::string_view name);
/// "as-given", "q8_0" or "q4_0"; nothing for any other.
HEADRACE_API std::optional<WeightFormat> find_weight_format(std::string_view name);
HEADRACE_API std::string_view name_of(WeightFormat format);

}  // namespace headrace
