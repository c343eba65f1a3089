#include "llm/parameters/schemas.h"

#include "llm/schema/kept_schema.h"
#include "llm/schema/schema_cost.h"

namespace headrace::llm {

Status check_schema(const ParameterContext& parameter, const std::string& place, const Json& schema,
                    bool is_strict) {
    const std::string name = parameter.key + place;
    if (const Status cost = check_schema_cost(schema); !cost.ok()) return cost.error().within(name);
    const Result<KeptSchema> kept = keep_schema(schema);
    if (!kept.ok()) return kept.error().within(name);
    const std::vector<LostKeyword>& lost = kept.value().lost;
    if (is_strict && !lost.empty())
        return invalid("'{}': {}; leave it out, or leave out 'strict'", name, lost.front().message());
    constexpr std::size_t kMostNotes = 16;
    for (std::size_t i = 0; i < lost.size() && i < kMostNotes; ++i)
        parameter.warn(true, fmt::format("'{}': {}", name, lost[i].message()));
    if (lost.size() > kMostNotes)
        parameter.warn(true,
                       fmt::format("'{}': {} more keywords are not kept to", name, lost.size() - kMostNotes));
    return success();
}

Result<bool> strictness(const ParameterContext& parameter, const std::string& place, const Json& holder) {
    const auto strict = holder.find("strict");
    if (strict == holder.end() || strict->is_null()) return false;
    if (strict->is_boolean()) return strict->get<bool>();
    return invalid("'{}{}.strict' is {}; it must be true or false", parameter.key, place, shown(*strict));
}

}  // namespace headrace::llm
