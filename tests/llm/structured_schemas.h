#pragma once
#include <fstream>
#include <map>
#include <string>

#include "checkout.h"
#include "llm/json.h"

namespace headrace::llm {

/// Thirty JSON schemas by name, which the benchmark of structured answers has, too.
inline std::map<std::string, std::string> structured_schemas() {
    std::ifstream file(checkout_path("tests/llm/schemas.json"));
    std::map<std::string, std::string> schemas;
    const Json all = Json::parse(file);
    for (const auto& [name, schema] : all.items()) schemas[name] = schema.dump();
    return schemas;
}

}  // namespace headrace::llm
