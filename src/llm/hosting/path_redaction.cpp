#include "llm/hosting/path_redaction.h"

#include <filesystem>

#include "base/log.h"

namespace headrace::llm {
namespace {

/// Whether anything was replaced.
bool replace_all(std::string& text, const std::string& what, const std::string& with) {
    bool found = false;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size(), found = true)
        text.replace(at, what.size(), with);
    return found;
}

}  // namespace

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
