#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace headrace::llm {

/// What a guest calls files of the host: errors that reach it name them so, and no folders of the host's.
class GuestNames {
public:
    /// path: what the files are opened by. The guest learns the last part of the host's own, which no guest
    /// named.
    void add(const std::string& path, const std::string& name);
    void add_own(const std::string& path);
    /// The error in the guest's words; where they differ, the log says what they stand for.
    Error within(Error error) const;

private:
    std::vector<std::pair<std::string, std::string>> names_;  // by path
};

}  // namespace headrace::llm
