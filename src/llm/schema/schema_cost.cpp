#include "llm/schema/schema_cost.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace headrace::llm {
namespace {

constexpr double kMostCost = 1e9;  // about two seconds

const Json* member(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
}

/// An object's grammar takes time with the third power of its optional properties.
class Cost {
public:
    void add(const Json& schema) {
        if (schema.is_object()) {
            const double optional = optional_properties(schema);
            most_optional = std::max(most_optional, optional);
            cubes_ += optional * optional * optional;
            if (const Json* parts = member(schema, "allOf"); parts && parts->is_array()) merge(*parts);
        }
        if (schema.is_structured())
            for (const Json& part : schema) add(part);
    }

    /// What allOf joins becomes one object; where its parts are references they may be any of the objects.
    double total() const {
        double cost = cubes_;
        for (const double parts : merged_)
            cost += parts * parts * parts * most_optional * most_optional * most_optional;
        return cost;
    }

    double most_optional = 0;

private:
    static double optional_properties(const Json& object) {
        const Json *properties = member(object, "properties"), *required = member(object, "required");
        if (!properties || !properties->is_object()) return 0;
        std::unordered_set<std::string_view> needed;
        if (required && required->is_array())
            for (const Json& name : *required)
                if (name.is_string()) needed.insert(name.get_ref<const std::string&>());
        double optional = 0;
        for (const auto& [name, unused] : properties->items()) optional += !needed.contains(name);
        return optional;
    }

    void merge(const Json& parts) {
        double count = 0;
        for (const Json& part : parts) {
            const Json* choices = part.is_object() ? member(part, "anyOf") : nullptr;
            count += choices && choices->is_array() ? static_cast<double>(choices->size()) : 1;
        }
        merged_.push_back(count);
    }

    double cubes_ = 0;
    std::vector<double> merged_;
};

}  // namespace

Status check_schema_cost(const Json& schema) {
    Cost cost;
    cost.add(schema);
    if (cost.total() <= kMostCost) return success();
    return invalid(
        "a JSON schema has too many optional properties, {} in one of its objects; list more in 'required', "
        "or "
        "join fewer with 'allOf'",
        cost.most_optional);
}

}  // namespace headrace::llm
