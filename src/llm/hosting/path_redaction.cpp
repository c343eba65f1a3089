#include "llm/hosting/path_redaction.h"

#include <filesystem>

#include "base/log.h"
#include "base/replace_all.h"

namespace headrace::llm {

void GuestNames::add(const std::string& path, const std::string& name) {
    if (!path.empty() && path != name) names_.emplace_back(path, name);
}

void GuestNames::add_own(const std::string& path) { add(path, std::filesystem::path(path).filename()); }

Error GuestNames::within(Error error) const {
    for (const auto& [path, name] : names_)
        if (replace_all(error.message, path, name)) HR_LOG(info, {}, "'{}' stands for {}", name, path);
    for (const auto& [path, name] : names_) {  // the other files of a model that is split
        const std::filesystem::path folder = std::filesystem::path(path).parent_path();
        if (folder.has_relative_path()) replace_all(error.message, folder.string() + "/", "");
    }
    return error;
}

}  // namespace headrace::llm
