#include "loading/library_search.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/library_folder.h"

namespace headrace {

std::string find_backend_library(const char* file, const char* variable) {
    if (const char* given = std::getenv(variable)) return given;
    const auto here = library_folder(reinterpret_cast<const void*>(&find_backend_library));
    std::error_code error;
    if (!here.empty())
        for (const auto& folder : {here, here / "lib", here.parent_path() / "lib"})
            if (std::filesystem::exists(folder / file, error)) return (folder / file).string();
    return {};
}

}  // namespace headrace
