#include "passes/quantized_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/constant.h"
#include "ops/quantize.h"
#include "passes/rewrite.h"

namespace headrace {
namespace {

constexpr DTypeSet kBytes{DType::i8, DType::u8};

bool is_plain_constant(const Graph& graph, ValueId id) {
    return id != kNoValue && graph.value(id).kind == ValueKind::constant &&
           graph.value(id).type.format == BlockFormat::plain;
}

/// Memory that a caller lent may lie anywhere.
template <class T>
T element(const Value& v, std::int64_t i) {
    T value;
    std::memcpy(&value, v.constant->bytes.data() + sizeof(T) * static_cast<std::size_t>(i), sizeof(T));
    return value;
}

/// Element i of a constant in i8, u8 or i32.
std::int32_t int8_element(const Value& v, std::int64_t i) {
    switch (v.type.dtype) {
        case DType::i8: return element<std::int8_t>(v, i);
        case DType::u8: return element<std::uint8_t>(v, i);
        default: return element<std::int32_t>(v, i);
    }
}

bool is_scale(float x) { return std::isfinite(x) && x > 0; }

/// A node's scale and zero point; none where there are several.
std::optional<Int8Scale> one_scale(const Graph& graph, const Node& node, DType type) {
    const ValueId scale = node.inputs[1], zero = node.inputs.size() > 2 ? node.inputs[2] : kNoValue;
    if (!kBytes.has(type) || !is_plain_constant(graph, scale) ||
        (zero != kNoValue && !is_plain_constant(graph, zero)))
        return std::nullopt;
    const TensorType& scale_type = graph.value(scale).type;
    if (scale_type.dtype != DType::f32 || scale_type.elements() != 1) return std::nullopt;
    Int8Scale made{type, element<float>(graph.value(scale), 0),
                   zero == kNoValue ? 0 : int8_element(graph.value(zero), 0)};
    return is_scale(made.scale) ? std::optional(made) : std::nullopt;
}

/// Whether a scale has an element for each place along an axis of `integer` and no more, or one in all.
bool lies_along(const TensorType& scale, const TensorType& integer, int axis) {
    if (scale.elements() == 1) return true;
    const int shift = integer.rank() - scale.rank();
    for (int d = 0; d < integer.rank(); ++d) {
        const Dim extent = d < shift ? Dim(1) : scale.shape[static_cast<std::size_t>(d - shift)];
        if (!(extent == (d == axis ? integer.shape[static_cast<std::size_t>(d)] : Dim(1)))) return false;
    }
    return true;
}

/// Places along the axis, and how many elements lie between them.
struct Places {
    std::int64_t count, inner;
    Places(const TensorType& type, int axis) : count(type.sizes()[static_cast<std::size_t>(axis)]), inner(1) {
        const auto sizes = type.sizes();
        for (std::size_t d = static_cast<std::size_t>(axis) + 1; d < sizes.size(); ++d) inner *= sizes[d];
    }
    std::size_t of(std::int64_t i) const { return static_cast<std::size_t>(i / inner % count); }
};

template <class T>
Result<ValueId> cleared_as(Graph& graph, const Int8Weights& weights, int axis, DType type) {
    const Value& given = graph.value(weights.bytes);
    Value made{.kind = ValueKind::constant, .type = {type, given.type.shape}, .name = given.name};
    HR_ASSIGN(auto buffer, AlignedBuffer::allocate(made.type.bytes(), "weights of integers"));
    const Places places(given.type, axis);
    auto* to = reinterpret_cast<T*>(buffer.data());
    for (std::int64_t i = 0; i < given.type.elements(); ++i)
        to[i] = static_cast<T>(int8_element(given, i) - weights.zeros[places.of(i)]);
    made.constant = own_constant(std::move(buffer));
    graph.values.push_back(std::move(made));
    return static_cast<ValueId>(graph.values.size() - 1);
}

}  // namespace

std::int32_t Int8Scale::integer(double real) const {
    return static_cast<std::int32_t>(
        ops::quantize(static_cast<float>(real) / scale, zero, ops::integer_range(type)));
}

std::optional<Int8Value> dequantized(const Graph& graph, ValueId real) {
    const Node* node = producer(graph, real, "dequantize_linear");
    if (!node || graph.value(real).type.dtype != DType::f32) return std::nullopt;
    const ValueId bytes = node->inputs[0];
    const auto scale = one_scale(graph, *node, graph.value(bytes).type.dtype);
    // A state may have been overwritten when another node reads it.
    if (!scale || graph.value(bytes).kind == ValueKind::state) return std::nullopt;
    return Int8Value{bytes, *scale};
}

std::optional<Int8Scale> quantized_scale(const Graph& graph, const Node& quantize) {
    if (!is(quantize, "quantize_linear") || graph.value(quantize.inputs[0]).type.dtype != DType::f32)
        return std::nullopt;
    return one_scale(graph, quantize, graph.value(quantize.outputs[0]).type.dtype);
}

std::optional<Int8Weights> int8_weights(const Graph& graph, ValueId real, int axis) {
    const Node* node = producer(graph, real, "dequantize_linear");
    if (!node || !is_plain_constant(graph, node->inputs[0]) || !is_plain_constant(graph, node->inputs[1]))
        return std::nullopt;
    const ValueId zero = node->inputs.size() > 2 ? node->inputs[2] : kNoValue;
    if (zero != kNoValue && !is_plain_constant(graph, zero)) return std::nullopt;
    const TensorType &type = graph.value(node->inputs[0]).type, &scale = graph.value(node->inputs[1]).type;
    if (!kBytes.has(type.dtype) || scale.dtype != DType::f32 || !lies_along(scale, type, axis))
        return std::nullopt;
    Int8Weights weights{node->inputs[0], {}, {}};
    for (std::int64_t i = 0; i < Places(type, axis).count; ++i) {
        const std::int64_t at = scale.elements() == 1 ? 0 : i;
        weights.scales.push_back(element<float>(graph.value(node->inputs[1]), at));
        weights.zeros.push_back(zero == kNoValue ? 0 : int8_element(graph.value(zero), at));
        if (!is_scale(weights.scales.back())) return std::nullopt;
    }
    return weights;
}

Result<ValueId> cleared_weights(Graph& graph, const Int8Weights& weights, int axis) {
    const Value& given = graph.value(weights.bytes);
    const bool is_cleared = std::ranges::all_of(weights.zeros, [](std::int32_t zero) { return zero == 0; });
    if (is_cleared && given.type.dtype == DType::i8) return weights.bytes;
    const Places places(given.type, axis);
    bool fits = true;
    for (std::int64_t i = 0; i < given.type.elements(); ++i) {
        const std::int32_t number = int8_element(given, i) - weights.zeros[places.of(i)];
        fits = fits && number >= -128 && number <= 127;
    }
    return fits ? cleared_as<std::int8_t>(graph, weights, axis, DType::i8)
                : cleared_as<std::int16_t>(graph, weights, axis, DType::i16);
}

std::optional<std::vector<float>> in_units(const Graph& graph, ValueId list,
                                           const std::vector<double>& units) {
    const Node* node = producer(graph, list, "dequantize_linear");
    const auto count = static_cast<std::int64_t>(units.size());
    if (node && node->inputs.size() > 2 && node->inputs[2] != kNoValue) {
        const Value& zero = graph.value(node->inputs[2]);
        if (!is_plain_constant(graph, node->inputs[2])) return std::nullopt;
        for (std::int64_t i = 0; i < zero.type.elements(); ++i)
            if (int8_element(zero, i) != 0) return std::nullopt;
    }
    const ValueId numbers = node ? node->inputs[0] : list;
    if (!is_plain_constant(graph, numbers) || graph.value(numbers).type.elements() != count)
        return std::nullopt;
    const Value& v = graph.value(numbers);
    if (v.type.dtype != (node ? DType::i32 : DType::f32)) return std::nullopt;
    const Value* scale = node ? &graph.value(node->inputs[1]) : nullptr;
    if (scale && (scale->kind != ValueKind::constant || scale->type.dtype != DType::f32)) return std::nullopt;
    const std::int64_t scales = scale ? scale->type.elements() : 1;
    if (scales != 1 && scales != count) return std::nullopt;
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) {
        const double real =
            scale ? int8_element(v, i) * static_cast<double>(element<float>(*scale, scales == 1 ? 0 : i))
                  : static_cast<double>(element<float>(v, i));
        values.push_back(static_cast<float>(real / units[static_cast<std::size_t>(i)]));
    }
    return values;
}

}  // namespace headrace
