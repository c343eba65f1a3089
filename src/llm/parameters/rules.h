#pragma once
#include <set>

#include "llm/parameters/value.h"

namespace headrace::llm {

/// What a JSON text changed, for the rules about several parameters.
struct ParameterUpdate {
    const Settings& base;
    Settings& settings;
    std::set<std::string_view> given;  ///< rows' paths
    Diagnostics& diagnostics;

    bool has(std::initializer_list<std::string_view> paths) const;
    void warn(std::string_view key, bool strict, std::string message) const {
        diagnostics.push_back({{std::string(key), std::move(message)}, strict});
    }
    /// Parameters that exclude each other: an error, or, read leniently, a warning that says what is done.
    Status settle(std::string_view key, const Error& error, std::string_view done) const {
        if (!base.lenient) return error.of_parameter(key);
        warn(key, true, fmt::format("{}; {}", error.message, done));
        return success();
    }
};

/// Refuses a temperature above 2: llama.cpp takes any, and no API documents more.
Status check_temperature(const Settings& settings);

/// Errors of parameters that exclude each other; adjusts those that follow others, with a warning.
Status check_together(const ParameterUpdate& update);

}  // namespace headrace::llm
