#pragma once
#include <filesystem>

namespace headrace {

/// The folder of the library or program that an address lies in, without links on the way; empty where that
/// is not known.
std::filesystem::path library_folder(const void* address);

}  // namespace headrace
