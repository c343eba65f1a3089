#pragma once
#include <string_view>

#include "doors/onnx/reading/op_writer.h"

/// Element types that the catalog does not have: their values lie in wider types that hold them exactly.
namespace headrace::onnx {

/// The smallest and the largest number of a carried integer type.
struct WholeRange {
    std::int64_t low, high;
};
WholeRange range_of(ElementType type);

/// x as one of these types. Integers keep their low bits, of floats those of the integer of 32 bits.
/// saturate, direction: as Cast has them, for floats; direction is for f8e8m0.
Operand narrowed(OpWriter& g, const Operand& x, ElementType type, bool saturate = true,
                 std::string_view direction = "up");
/// The elements in the type that holds them.
Operand carried(OpWriter& g, const Operand& x);
/// An op's result in a type's carrier as that type.
Operand as_carried(OpWriter& g, const Operand& y, ElementType type, std::string_view op);

}  // namespace headrace::onnx
