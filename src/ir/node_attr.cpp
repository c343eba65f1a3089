#include "ir/node_attr.h"

#include <algorithm>
#include <cassert>

#include "ir/op_def.h"

namespace headrace {

AttrValue attr_value(const Node& node, std::string_view name) {
    const auto& fields = node.op->fields;
    const auto field =
        std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
    assert(field != fields.end());
    return node.op->attr_values(node.attrs.get())[static_cast<std::size_t>(field - fields.begin())];
}

}  // namespace headrace
