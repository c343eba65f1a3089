#include "base/warning.h"

#include <cstdio>
#include <string>

namespace headrace {

void warn(std::string_view message) {
    // One call, so that lines of several threads do not mix.
    const std::string line = "headrace: " + std::string(message) + "\n";
    std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace headrace
