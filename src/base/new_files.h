#pragma once
#include <functional>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace headrace {

/// Files that appear under their names together, once all of them are written. What finish() does not reach
/// is removed.
class NewFiles {
public:
    NewFiles() = default;
    NewFiles(const NewFiles&) = delete;
    NewFiles& operator=(const NewFiles&) = delete;
    ~NewFiles();

    /// Errors: what `content` reports; io.
    Status write(const std::string& path, const std::function<Status(std::ostream&)>& content);
    Status finish();

private:
    std::vector<std::pair<std::string, std::string>> files_;  ///< unfinished, final
};

}  // namespace headrace
