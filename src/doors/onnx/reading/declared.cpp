#include "doors/onnx/reading/declared.h"

#include <unordered_set>

#include "base/utf8.h"

namespace headrace::onnx {
namespace {

constexpr int kMostNested = 4;  // kinds within one another that are told; fewer are read

/// The type of the tensors within, and what there is of such.
std::pair<TypeMessage, std::string> innermost(TypeMessage type) {
    std::string kinds;
    for (int depth = 0; depth < kMostNested; ++depth) {
        using Kind = TypeMessage::Kind;
        const bool is_outer = type.kind == Kind::sequence || type.kind == Kind::optional;
        if (is_outer || type.kind != Kind::tensor || kinds.empty())
            kinds += fmt::format("{}{}", kinds.empty() ? "" : " of ", name_of(type.kind));
        if (!is_outer) break;
        auto inner = decode_type(type.element);
        type = inner.ok() ? std::move(inner).value() : TypeMessage();
    }
    return {std::move(type), std::move(kinds)};
}

}  // namespace

Result<ListedInputs> inputs_of(const Source& source) {
    std::unordered_set<std::string_view> constants;
    for (Bytes bytes : source.graph().initializers) {
        const auto tensor = decode_tensor(bytes);
        if (!tensor.ok()) return tensor.error().within(source.title);
        constants.insert(tensor.value().name);
    }
    for (Bytes bytes : source.graph().sparse_initializers) {
        const auto name = name_of_sparse(bytes);
        if (!name.ok()) return name.error().within(source.title);
        constants.insert(name.value());
    }
    ListedInputs inputs;
    for (const ValueMessage& v : source.graph().inputs)
        (constants.contains(v.name) ? inputs.initializers : inputs.given).push_back(&v);
    return inputs;
}

std::string dimension_name(const DimensionMessage& dimension, std::string_view input, std::size_t axis) {
    return dimension.name.empty() ? fmt::format("{}.{}", input, axis) : std::string(dimension.name);
}

OnnxValue declared(const ValueMessage& value) {
    auto [type, kind] = innermost(value.type);
    OnnxValue found;
    found.name = value.name;
    found.kind = std::move(kind);
    found.element_type = type.element_type;
    if (const auto element = element_type(type.element_type)) found.type = name_of(*element);
    if (!type.has_shape) return found;
    found.shape.emplace();
    for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
        const DimensionMessage& d = type.shape[axis];
        if (d.size)
            found.shape->emplace_back(*d.size);
        else
            found.shape->emplace_back(dimension_name(d, value.name, axis));
        found.dimension_names.emplace_back(d.name);
        found.denotations.push_back(valid_utf8(d.denotation));
    }
    return found;
}

}  // namespace headrace::onnx
