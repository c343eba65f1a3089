#include "base/cpu_name.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string_view>

#include "base/cpu_count.h"

namespace headrace {

std::string cpu_name() {
    // Virtual machines hide the name's end; family, model and cache still tell processors apart.
    constexpr std::array<std::string_view, 5> kFields{"model name", "cpu family", "model", "stepping",
                                                      "cache size"};
    std::array<std::string, kFields.size()> values;
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line) && !line.empty();) {  // the first CPU's
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string_view field = std::string_view(line).substr(0, line.find_first_of("\t:"));
        for (std::size_t i = 0; i < kFields.size(); ++i)
            if (field == kFields[i] && colon + 2 <= line.size()) values[i] = line.substr(colon + 2);
    }
    return fmt::format("{}, {} threads", fmt::join(values, "/"), usable_cpus());
}

}  // namespace headrace
