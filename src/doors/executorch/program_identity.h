#pragma once
#include <executorch/runtime/core/named_data_map.h>

namespace headrace::executorch_door {

/// An address that all methods of a loaded program have in common and no other loaded program has, of what a
/// delegate is given when one of them is loaded; null where there is none.
const void* program_identity(const executorch::runtime::NamedDataMap* map);

}  // namespace headrace::executorch_door
