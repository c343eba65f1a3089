#pragma once
#include <string>

#include "base/content_hash.h"
#include "base/result.h"

namespace headrace::llm {

/// The hash of a file's contents. A file of gigabytes takes seconds, so the folder remembers it: by what the
/// system tells of the file (device, inode, size, times), as build tools do. Where the folder cannot be
/// written, the file is read each time. Errors: the file cannot be read.
Result<ContentHash> file_hash(const std::string& path, const std::string& folder);

}  // namespace headrace::llm
