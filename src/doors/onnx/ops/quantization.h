#pragma once
#include <initializer_list>

#include "doors/onnx/reading/operators.h"

namespace headrace::onnx {

/// Real numbers as whole ones, of the zero point's type; without a zero point of what output_dtype names, or
/// u8. axis: where scales and zero points that are lists lie. The node's attributes: block_size,
/// output_dtype, saturate.
Operand quantized(OpWriter& g, const Node& node, const Operand& x, const Operand& scale, const Operand& zero,
                  int axis);
/// The other way; zero may be null.
Operand dequantized(OpWriter& g, const Node& node, const Operand& x, const Operand& scale,
                    const Operand& zero, int axis);

/// The block in which each place along an extent is.
Operand blocks_of_places(std::int64_t extent, std::int64_t block);

/// As u8, with the scale and zero point by the input's own range.
struct DynamicallyQuantized {
    Operand y, scale, zero;
};
DynamicallyQuantized dynamically_quantized(OpWriter& g, const Operand& x);

/// The product of whole numbers less their zero points, which may be null: i32, exact.
Operand exact_product(OpWriter& g, const Operand& a, const Operand& b, const Operand& a_zero,
                      const Operand& b_zero);
/// ONNX's QLinearConv with the node's inputs and attributes.
Operand qlinear_conv(OpWriter& g, const Node& node);

/// Whether these inputs, scales, zero points and weights among them, are known or absent: such operators are
/// read as operators on real numbers, which passes compute in whole ones.
bool are_known(const Node& node, std::initializer_list<std::size_t> inputs);

}  // namespace headrace::onnx
