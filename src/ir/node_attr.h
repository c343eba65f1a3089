#pragma once
#include <string_view>
#include <variant>

#include "ir/graph.h"

namespace headrace {

/// A node's attribute, which its op must have.
AttrValue attr_value(const Node& node, std::string_view name);
template <class T>
T attr(const Node& node, std::string_view name) {
    return std::get<T>(attr_value(node, name));
}

}  // namespace headrace
