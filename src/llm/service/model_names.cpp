#include "llm/service/model_names.h"

#include <algorithm>
#include <filesystem>

#include "base/log.h"

namespace headrace::llm {

Result<std::string> model_path(std::string_view name, const Settings& settings) {
    namespace fs = std::filesystem;
    if (name.empty()) return invalid("the model's name is empty");
    if (name.find('\0') != std::string_view::npos) return invalid("the model's name has a NUL byte inside");
    if (const auto alias = settings.model_aliases.find(std::string(name));
        alias != settings.model_aliases.end())
        return alias->second;
    const fs::path given{std::string(name)};
    constexpr std::size_t kLongestPart = 255;  // bytes, as file systems have it
    for (const fs::path& part : given)
        if (part.native().size() > kLongestPart)
            return invalid("the model's name has a part of {} bytes, '{:.40}...', and {} are the most",
                           part.native().size(), part.native(), kLongestPart);
    if (settings.model_root.empty()) return given.string();
    std::error_code error;
    const fs::path root = fs::canonical(settings.model_root, error);
    if (error) {
        HR_LOG(error, {}, "model_root is {}: {}", settings.model_root, error.message());
        return failure(Code::not_found, "the host's model_root cannot be used: {}", error.message());
    }
    const fs::path path = fs::weakly_canonical(given.is_absolute() ? given : root / given, error);
    const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
    if (error || end != root.end())
        return failure(Code::denied, "'{}' is outside the model root, and no alias", name);
    return path.string();
}

}  // namespace headrace::llm
