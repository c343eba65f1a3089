#pragma once
#include <string>
#include <string_view>

#include "llm/json.h"

namespace headrace::llm {

/// What a parameter does, and its section of the page; both empty where no parameter has the name.
struct ParameterText {
    std::string_view summary, section;
};
ParameterText parameter_text(std::string_view name);

/// The parameters that a request may set, as `headrace serve --parameters` prints them.
std::string request_parameters_text();

/// Every row of the table, as `headrace parameters --json` has them.
Json parameters_list();

}  // namespace headrace::llm
