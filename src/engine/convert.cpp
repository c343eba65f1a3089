#include "engine/convert.h"

namespace headrace {

Shape to_shape(const std::vector<Dimension>& dimensions) {
    Shape shape;
    for (const Dimension& d : dimensions)
        shape.push_back(d.is_dynamic() ? Dim::symbolic(d.name, d.min_size, d.max_size) : Dim(d.size));
    return shape;
}

std::vector<Dimension> to_dimensions(const Shape& shape) {
    std::vector<Dimension> list;
    for (const Dim& d : shape) {
        if (d.is_symbolic())
            list.emplace_back(d.symbol().name, d.symbol().max, d.symbol().min);
        else
            list.emplace_back(d.size());
    }
    return list;
}

AttrValue to_attr_value(const Option& option) {
    return std::visit(
        []<class T>(const T& value) -> AttrValue {
            if constexpr (std::same_as<T, std::vector<Dimension>>)
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
