#pragma once
#include <string>

namespace headrace {

/// What kind of processor this is and how many of its threads there are, as far as the system tells: measured
/// times hold for machines of the same name.
std::string cpu_name();

}  // namespace headrace
