#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/dtype.h"

namespace headrace::onnx {

/// ONNX's element types that are read. Those up to `boolean` are the catalog's, in its order; the others'
/// values lie in wider types that hold them exactly.
enum class ElementType : std::uint8_t {
    f32,
    f16,
    bf16,
    f64,
    i8,
    u8,
    i16,
    i32,
    u32,
    i64,
    u64,
    i4,
    u4,
    boolean,
    u16,
    i2,
    u2,
    f8e4m3fn,
    f8e4m3fnuz,
    f8e5m2,
    f8e5m2fnuz,
    f8e8m0,
    f4e2m1,
};
inline constexpr int kElementTypes = 23;

/// By the number that TensorProto.DataType has for it.
std::optional<ElementType> element_type(std::int32_t onnx_number);
/// "f32", "bool", "f8e5m2": as messages call it.
std::string_view name_of(ElementType type);
/// ONNX's own name of a number, or "data type 77", for messages.
std::string onnx_name(std::int32_t onnx_number);
/// The number of a name such as "FLOAT16", which operator sets 1 to 5 have.
std::optional<std::int32_t> onnx_number(std::string_view name);
/// "FLOAT, FLOAT16, ...": all that are read.
std::string known_types();

/// The catalog's type in which a graph has such elements; truth values are u8.
DType stored_as(ElementType type);
/// What the catalog has as a type of elements of that name.
ElementType element_type(DType type);
/// Bits of an element in a file.
int bits_of(ElementType type);

/// Whether the catalog has no such type, so that a wider one carries its values.
constexpr bool is_carried(ElementType type) { return type > ElementType::boolean; }
constexpr bool is_float(ElementType type) { return type <= ElementType::f64; }
constexpr bool is_small_float(ElementType type) { return type >= ElementType::f8e4m3fn; }
/// Whether the type is one of the catalog's integer types without a sign.
constexpr bool is_unsigned(ElementType type) {
    return type == ElementType::u8 || type == ElementType::u16 || type == ElementType::u32 ||
           type == ElementType::u64;
}

}  // namespace headrace::onnx
