#include "llm/parameters/parameters.h"

#include <algorithm>
#include <map>

#include "llm/parameters/json.h"
#include "llm/parameters/named_values.h"
#include "llm/parameters/names.h"
#include "llm/parameters/rules.h"
#include "llm/parameters/value.h"

namespace headrace::llm {
namespace {

/// Suggestions look at every name, so a hostile text must not ask for many.
constexpr std::size_t kMaxUnknown = 32;

struct Given {
    std::string key;  ///< as the caller spells it, with dots
    const Json* value;
};

/// Finds out which rows the keys of an object mean.
class Walk {
public:
    Walk(Level level, bool lenient, Diagnostics& diagnostics)
        : level_(level), lenient_(lenient), findings_(diagnostics) {}

    std::map<const Row*, Given> given;

    void object(const Json& object, const std::string& prefix, const std::vector<std::string>& outer) {
        for (const auto& [name, value] : object.items()) {
            if (value.is_null()) continue;
            std::vector<std::string> parts = outer;
            for (std::string& part : key_parts(name)) parts.push_back(std::move(part));
            const std::string key = prefix + name;
            const Row* row = find_row(parts);
            if (!row && lenient_ && outer.empty() && !is_section(parts)) row = find_row_of_group(parts);
            if (value.is_object() && !(row && row->takes_object()) && is_section(parts))
                this->object(value, key + ".", parts);
            else if (row)
                take(*row, key, value);
            else
                unknown(key, parts, value);
        }
    }

    void finish() {
        if (unknown_ > kMaxUnknown)
            warn(true, "", fmt::format("{} more parameters are not known", unknown_ - kMaxUnknown));
    }

private:
    void warn(bool strict, const std::string& key, std::string message) {
        findings_.push_back({{key, std::move(message)}, strict});
    }

    void take(const Row& row, const std::string& key, const Json& value) {
        if (row.ignored())
            return warn(false, key, fmt::format("'{}' has no effect: {}", shortened(key), row.summary));
        if (row.level < level_)
            return warn(true, key,
                        fmt::format("'{}' belongs into the {}'s configuration and is ignored here",
                                    shortened(key), level_name(row.level)));
        const auto [at, added] = given.try_emplace(&row, Given{key, &value});
        if (!added)
            warn(true, key,
                 fmt::format("'{}' is ignored, as '{}' is the same parameter", shortened(key),
                             shortened(at->second.key)));
    }

    void unknown(const std::string& key, const std::vector<std::string>& parts, const Json& value) {
        if (++unknown_ > kMaxUnknown) return;
        if (!value.is_object() && is_section(parts))
            return warn(true, shortened(key),
                        fmt::format("'{}' is {}; it must be an object of parameters; it is left out",
                                    shortened(key), shown(value)));
        const std::string best = suggestion(parts, level_, value.is_object());
        warn(true, shortened(key),
             fmt::format("'{}' is not known{}", shortened(key),
                         best.empty() ? std::string() : fmt::format("; did you mean '{}'?", best)));
    }

    /// Keys in messages, which nobody limits, as text.
    static std::string shortened(const std::string& key) {
        const std::string quoted = shown(Json(key));
        return quoted.substr(1, quoted.size() - (quoted.ends_with('"') ? 2 : 1));
    }

    const Level level_;
    const bool lenient_;
    Diagnostics& findings_;
    std::size_t unknown_ = 0;
};

/// Without this a program would run with what it meant to confine its callers by, and did not.
bool confines_callers(const Row& row) { return row.section() == "service"; }

/// Stores a value. Read leniently, one that cannot be taken is a warning, and the setting stays as it was.
Status take_value(const ParameterContext& parameter, const Json& value, Settings& settings) {
    if (!parameter.lenient) {
        const Status status = read_value(parameter, value, settings);
        return status.ok() ? success() : Status(status.error().of_parameter(parameter.key));
    }
    Settings changed = settings;
    const Status status = read_value(parameter, value, changed);
    if (status.ok())
        settings = std::move(changed);
    else
        parameter.warn(true, status.error().message + "; it is left out");
    return success();
}

Result<Settings> with_object(const Settings& base, const Json& object, Level level, Warnings& warnings) {
    Diagnostics diagnostics;
    Walk walk(level, base.lenient, diagnostics);
    walk.object(object, "", {});
    walk.finish();

    Settings settings = base;
    ParameterUpdate update{base, settings, {}, diagnostics};
    for (const Row* row : parameter_rows()) {
        const auto at = walk.given.find(row);
        if (at == walk.given.end()) continue;
        const bool lenient = base.lenient && !confines_callers(*row);
        const ParameterContext parameter{*row, at->second.key, level, diagnostics, lenient};
        HR_TRY(take_value(parameter, *at->second.value, settings));
        update.given.insert(row->path);
    }
    HR_TRY(check_together(update));

    const auto refused =
        std::find_if(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& f) { return f.strict; });
    if (settings.strict && refused != diagnostics.end())
        return invalid("{} ('strict' is true)", refused->warning.message)
            .of_parameter(refused->warning.parameter);
    for (Diagnostic& diagnostic : diagnostics) warnings.push_back(std::move(diagnostic.warning));
    return settings;
}

}  // namespace

Parameters request_parameters(const Settings& settings) {
    Settings copy = settings;  // a row's field is reached in settings that may be changed
    Json all = Json::object();
    for (const Row* row : parameter_rows())
        if (row->level == Level::request && !row->ignored())
            all[std::string(split(row->names).front())] = value_of(*row, copy);
    return parameters_of(all);
}

std::string_view level_name(Level level) {
    constexpr std::string_view kNames[] = {"service", "model", "session", "request"};
    return kNames[static_cast<std::size_t>(level)];
}

Result<Settings> with_parameters(const Settings& base, std::string_view json, Level level,
                                 Warnings& warnings) {
    HR_ASSIGN(const Json object, parse_object(json));
    return with_object(base, object, level, warnings);
}

Result<Settings> with_parameters(const Settings& base, const Parameters& parameters, Level level,
                                 Warnings& warnings) {
    HR_ASSIGN(const Json object, checked_json_of(parameters));
    return with_object(base, object, level, warnings);
}

}  // namespace headrace::llm
