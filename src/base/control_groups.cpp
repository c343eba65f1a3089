#include "base/control_groups.h"

#include <filesystem>
#include <fstream>
#include <utility>

namespace headrace {

std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root) {
    // A line is "number:controllers:/path", without controllers for version 2. In a container the path may be
    // the host's while the mount begins at the container's own group: that is the root then.
    std::ifstream file(root + "/proc/self/cgroup");
    const std::string wanted = "," + std::string(controller) + ",";
    std::string line, second_path, first_path;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':'), next = line.find(':', colon + 1);
        if (colon == line.npos || next == line.npos) continue;
        const std::string controllers = "," + line.substr(colon + 1, next - colon - 1) + ",";
        if (controllers == ",,") second_path = line.substr(next + 1);
        if (controllers.find(wanted) != line.npos) first_path = line.substr(next + 1);
    }
    const std::string mount = root + "/sys/fs/cgroup";
    std::vector<ControlGroup> found;
    const auto add = [&](int version, const std::string& folder, const std::string& own) {
        for (auto path = std::filesystem::path(own).relative_path();; path = path.parent_path()) {
            found.push_back({path.empty() ? folder : folder + "/" + path.string(), version});
            if (path.empty()) break;
        }
    };
    add(2, mount, second_path);
    add(1, mount + "/" + std::string(controller), first_path);
    return found;
}

std::optional<std::uint64_t> number_in(const std::string& path) {
    std::ifstream file(path);
    std::uint64_t number = 0;
    return file >> number ? std::optional(number) : std::nullopt;
}

}  // namespace headrace
