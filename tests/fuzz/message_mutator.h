#pragma once
#include <string>
#include <string_view>

#include "fuzz/mutate.h"

namespace headrace::fuzz {

/// Changes a message of Protocol Buffers in one place, however deep, and keeps all lengths around it right,
/// so that what reads it gets beyond them. Parts come from `other`, a message of the same kind. Bytes that
/// are no message are changed as any.
std::string mutate_message(const std::string& message, const std::string& other, Mutator& mutator);

}  // namespace headrace::fuzz
