#include "base/library_folder.h"

#include <system_error>

#if defined(_WIN32)
#define NOMINMAX
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace headrace {
namespace {

#if defined(_WIN32)
std::filesystem::path library_file(const void* address) {
    constexpr DWORD kBorrowed =
        GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    HMODULE library = nullptr;
    if (!GetModuleHandleExW(kBorrowed, static_cast<LPCWSTR>(address), &library)) return {};
    wchar_t name[MAX_PATH];
    const DWORD length = GetModuleFileNameW(library, name, MAX_PATH);
    return length && length < MAX_PATH ? std::filesystem::path(name, name + length) : std::filesystem::path();
}
#else
std::filesystem::path library_file(const void* address) {
    Dl_info info{};
    return dladdr(address, &info) && info.dli_fname ? info.dli_fname : std::filesystem::path();
}
#endif

}  // namespace

std::filesystem::path library_folder(const void* address) {
    std::error_code error;
    const auto file = std::filesystem::canonical(library_file(address), error);
    return error ? std::filesystem::path() : file.parent_path();
}

}  // namespace headrace
