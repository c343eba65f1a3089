#pragma once
#include <string>
#include <string_view>

#include "doors/serve/request/json.h"

namespace headrace::serve {

/// What the program says while it serves, on stderr: lines of text or, all of them, JSON objects. A file has
/// them, too, where one is named, with their time and level.
class ServerLog {
public:
    enum class Level { info, warn, error };

    /// is_quiet: only errors show. file: appended to; where that is not possible it has no lines.
    ServerLog(bool is_json, bool is_quiet, const std::string& file = {});
    ~ServerLog();
    ServerLog(const ServerLog&) = delete;
    ServerLog& operator=(const ServerLog&) = delete;

    bool is_json() const { return is_json_; }
    /// "headrace: text", or {"time", "level", "message": text, ...more}.
    void say(Level level, const std::string& text, const Json& more = Json::object()) const;
    /// The text as it is, or {"time", "level", ...fields}.
    void note(Level level, const std::string& text, const Json& fields) const;
    /// In the file alone: what is said on stdout.
    void keep(Level level, const std::string& text) const;

private:
    bool shows(Level level) const { return !is_quiet_ || level == Level::error; }

    void write_to_file(std::string line) const;

    const bool is_json_, is_quiet_;
    const int file_ = -1;
};

}  // namespace headrace::serve
