#pragma once
#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace headrace {

/// The folder of the library or program that an address lies in, without links on the way; empty where that
/// is not known. Not for Windows.
inline std::filesystem::path library_folder(const void* address) {
    Dl_info info{};
    if (!dladdr(address, &info) || !info.dli_fname) return {};
    std::error_code error;
    const auto file = std::filesystem::canonical(info.dli_fname, error);
    return error ? std::filesystem::path() : file.parent_path();
}

}  // namespace headrace
