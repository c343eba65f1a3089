#include "llm/settings.h"

namespace headrace::llm {

Settings::Settings() = default;

}  // namespace headrace::llm
