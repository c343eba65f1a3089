#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headrace::serve {

/// Keeps the order in which keys were written.
using Json = nlohmann::ordered_json;

/// One line. Bytes that are no UTF-8, as of an answer that was cut, become U+FFFD.
inline std::string text_of(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace headrace::serve
