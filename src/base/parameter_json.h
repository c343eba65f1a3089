#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "headrace/language_model.h"

// Parameters as values of JSON, and back. Json: nlohmann's, in whichever order it keeps names.

namespace headrace {

/// Whole numbers that 64 bits with a sign do not hold become the nearest floating-point ones.
template <class Json>
ParameterValue parameter_of(const Json& value) {
    if (value.is_object()) {
        Parameters section;
        for (const auto& [name, member] : value.items()) section.set(name, parameter_of(member));
        return section;
    }
    if (value.is_array()) {
        std::vector<ParameterValue> list;
        for (const Json& element : value) list.push_back(parameter_of(element));
        return list;
    }
    if (value.is_string()) return value.template get<std::string>();
    if (value.is_boolean()) return value.template get<bool>();
    if (value.is_number_unsigned() && value.template get<std::uint64_t>() > INT64_MAX)
        return value.template get<double>();
    if (value.is_number_integer()) return value.template get<std::int64_t>();
    if (value.is_number_float()) return value.template get<double>();
    return nullptr;
}

/// As an object, whatever the values are.
template <class Json>
Json json_object_of(const Parameters& parameters);

template <class Json>
struct JsonOfParameter {
    Json operator()(const Parameters& section) const { return json_object_of<Json>(section); }
    Json operator()(const std::vector<ParameterValue>& list) const {
        Json array = Json::array();
        for (const ParameterValue& value : list) array.push_back(std::visit(*this, value));
        return array;
    }
    Json operator()(const auto& plain) const { return plain; }
};

template <class Json>
Json json_object_of(const Parameters& parameters) {
    Json object = Json::object();
    for (const auto& [name, value] : parameters.entries())
        object[name] = std::visit(JsonOfParameter<Json>{}, value);
    return object;
}

}  // namespace headrace
