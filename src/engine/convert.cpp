#include "engine/convert.h"

namespace headrace {

Shape to_shape(const std::vector<Extent>& extents) {
    Shape shape;
    for (const Extent& e : extents) shape.push_back(e.dim());
    return shape;
}

std::vector<Extent> to_extents(const Shape& shape) {
    std::vector<Extent> list;
    for (const Dim& d : shape) list.emplace_back(d);
    return list;
}

AttrValue to_attr_value(const Option& option) {
    return std::visit(
        []<class T>(const T& value) -> AttrValue {
            if constexpr (std::same_as<T, std::vector<Extent>>)
                return to_shape(value);
            else
                return value;
        },
        option);
}

NamedAttrs to_attrs(const Options& options) {
    NamedAttrs attrs;
    for (const auto& [name, option] : options) attrs.emplace_back(name, to_attr_value(option));
    return attrs;
}

}  // namespace headrace
