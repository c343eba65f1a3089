#include "doors/serve/request/parameter_json.h"

#include <cstdint>

namespace headrace::serve {
namespace {

struct ToJson {
    Json operator()(const Parameters& section) const { return json_of(section); }
    Json operator()(const std::vector<ParameterValue>& list) const {
        Json array = Json::array();
        for (const ParameterValue& value : list) array.push_back(std::visit(*this, value));
        return array;
    }
    Json operator()(const auto& plain) const { return plain; }
};

}  // namespace

ParameterValue value_of(const Json& value) {
    if (value.is_object()) {
        Parameters section;
        for (const auto& [name, member] : value.items()) section.set(name, value_of(member));
        return section;
    }
    if (value.is_array()) {
        std::vector<ParameterValue> list;
        for (const Json& element : value) list.push_back(value_of(element));
        return list;
    }
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return value.get<double>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number_float()) return value.get<double>();
    return nullptr;
}

Json json_of(const Parameters& parameters) {
    Json object = Json::object();
    for (const auto& [name, value] : parameters.entries()) object[name] = std::visit(ToJson{}, value);
    return object;
}

}  // namespace headrace::serve
