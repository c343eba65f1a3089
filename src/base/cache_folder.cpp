#include "base/cache_folder.h"

#include <cstdlib>
#include <filesystem>

namespace headrace {
namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

}  // namespace

Result<std::string> cache_folder(std::string_view name) {
    std::filesystem::path root(environment("XDG_CACHE_HOME"));
    if (!root.is_absolute()) {  // the XDG specification: relative paths are to be ignored
        const std::string home = environment("HOME");
        if (home.empty())
            return failure(Code::io, "there is no folder for caches: neither XDG_CACHE_HOME nor HOME is set");
        root = std::filesystem::path(home) / ".cache";
    }
    return (root / "headrace" / name).string();
}

Result<std::string> chosen_cache_folder(std::string_view option, const char* variable,
                                        std::string_view otherwise, std::string_view name) {
    std::string choice = option.empty() ? environment(variable) : std::string(option);
    if (choice.empty()) choice = otherwise;
    if (choice == "off") return std::string();
    return choice == "on" ? cache_folder(name) : choice;
}

}  // namespace headrace
