#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

/// One of the control groups that limit this process.
struct ControlGroup {
    std::string folder;
    int version = 2;
};

/// The groups of a controller ("memory", "cpu"), each from the process's own up to the root, of version 2 and
/// of version 1. root: the folder in which /proc and /sys are looked for.
std::vector<ControlGroup> control_groups(std::string_view controller, const std::string& root = "");

/// A file's first number; nothing when it begins with none, as with "max".
std::optional<std::uint64_t> number_in(const std::string& path);

}  // namespace headrace
