#pragma once
#include <string>
#include <string_view>

#include "doors/serve/request/json.h"

namespace headrace::serve {

/// What the program says while it serves, on stderr: lines of text or, all of them, JSON objects.
class ServerLog {
public:
    enum class Level { info, warn, error };

    /// is_quiet: only errors show.
    ServerLog(bool is_json, bool is_quiet) : is_json_(is_json), is_quiet_(is_quiet) {}

    bool is_json() const { return is_json_; }
    /// "headrace: text", or {"time", "level", "message": text, ...more}.
    void say(Level level, const std::string& text, const Json& more = Json::object()) const;
    /// The text as it is, or {"time", "level", ...fields}.
    void note(Level level, const std::string& text, const Json& fields) const;

private:
    bool shows(Level level) const { return !is_quiet_ || level == Level::error; }

    const bool is_json_, is_quiet_;
};

}  // namespace headrace::serve
