#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

/// What a graph says of integers that stand for real ones: real = (integer - zero) * scale.
namespace headrace {

/// One scale and zero point for all elements, of i8 or u8.
struct Int8Scale {
    DType type = DType::u8;
    float scale = 1;
    std::int32_t zero = 0;
    bool operator==(const Int8Scale&) const = default;

    /// A real number as an integer, as quantize_linear rounds it; infinities are the type's limits.
    std::int32_t integer(double real) const;
};

/// Bytes that stand for real numbers.
struct Int8Value {
    ValueId bytes = kNoValue;
    Int8Scale scale;
};

/// What a real value was made from, where that is dequantize_linear with constants; f32 only.
std::optional<Int8Value> dequantized(const Graph& graph, ValueId real);
/// What a node that is quantize_linear makes of f32, with constants.
std::optional<Int8Scale> quantized_scale(const Graph& graph, const Node& quantize);

/// A constant of bytes that stand for real numbers, with a scale and a zero point for all or for each place
/// along one axis.
struct Int8Weights {
    ValueId bytes = kNoValue;
    std::vector<float> scales;        ///< of each place along the axis
    std::vector<std::int32_t> zeros;  ///< the same
};
/// By the places along an axis, where that is how the scales lie.
std::optional<Int8Weights> int8_weights(const Graph& graph, ValueId real, int axis);
/// The numbers without their zero points, along the same axis: the constant itself where these are 0, else a
/// new one in i8 where that holds them, or i16.
Result<ValueId> cleared_weights(Graph& graph, const Int8Weights& weights, int axis);

/// The real numbers of a constant list, by dequantize_linear of i32 or as they are, divided by `units`: exact
/// where they are multiples of these.
std::optional<std::vector<float>> in_units(const Graph& graph, ValueId list,
                                           const std::vector<double>& units);

}  // namespace headrace
