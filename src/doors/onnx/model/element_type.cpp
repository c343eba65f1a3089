#include "doors/onnx/model/element_type.h"

#include <fmt/format.h>

#include <array>

namespace headrace::onnx {
namespace {

struct Row {
    ElementType type;
    std::int32_t number;  ///< of TensorProto.DataType
    std::string_view onnx, name;
    DType stored;
    int bits;
};

constexpr std::array<Row, kElementTypes> kRows{{
    {ElementType::f32, 1, "FLOAT", "f32", DType::f32, 32},
    {ElementType::f16, 10, "FLOAT16", "f16", DType::f16, 16},
    {ElementType::bf16, 16, "BFLOAT16", "bf16", DType::bf16, 16},
    {ElementType::f64, 11, "DOUBLE", "f64", DType::f64, 64},
    {ElementType::i8, 3, "INT8", "i8", DType::i8, 8},
    {ElementType::u8, 2, "UINT8", "u8", DType::u8, 8},
    {ElementType::i16, 5, "INT16", "i16", DType::i16, 16},
    {ElementType::i32, 6, "INT32", "i32", DType::i32, 32},
    {ElementType::u32, 12, "UINT32", "u32", DType::u32, 32},
    {ElementType::i64, 7, "INT64", "i64", DType::i64, 64},
    {ElementType::u64, 13, "UINT64", "u64", DType::u64, 64},
    {ElementType::i4, 22, "INT4", "i4", DType::i4, 4},
    {ElementType::u4, 21, "UINT4", "u4", DType::u4, 4},
    {ElementType::boolean, 9, "BOOL", "bool", DType::u8, 8},
    {ElementType::u16, 4, "UINT16", "u16", DType::u32, 16},
    {ElementType::i2, 26, "INT2", "i2", DType::i8, 2},
    {ElementType::u2, 25, "UINT2", "u2", DType::u8, 2},
    {ElementType::f8e4m3fn, 17, "FLOAT8E4M3FN", "f8e4m3fn", DType::f32, 8},
    {ElementType::f8e4m3fnuz, 18, "FLOAT8E4M3FNUZ", "f8e4m3fnuz", DType::f32, 8},
    {ElementType::f8e5m2, 19, "FLOAT8E5M2", "f8e5m2", DType::f32, 8},
    {ElementType::f8e5m2fnuz, 20, "FLOAT8E5M2FNUZ", "f8e5m2fnuz", DType::f32, 8},
    {ElementType::f8e8m0, 24, "FLOAT8E8M0", "f8e8m0", DType::f32, 8},
    {ElementType::f4e2m1, 23, "FLOAT4E2M1", "f4e2m1", DType::f32, 4},
}};

/// Types that are not read, by number.
constexpr std::array<std::pair<std::int32_t, std::string_view>, 4> kOthers{
    {{0, "UNDEFINED"}, {8, "STRING"}, {14, "COMPLEX64"}, {15, "COMPLEX128"}}};

const Row& row_of(ElementType type) { return kRows[static_cast<std::size_t>(type)]; }

}  // namespace

std::optional<ElementType> element_type(std::int32_t onnx_number) {
    for (const Row& row : kRows)
        if (row.number == onnx_number) return row.type;
    return std::nullopt;
}

std::string_view name_of(ElementType type) { return row_of(type).name; }

std::string onnx_name(std::int32_t onnx_number) {
    if (const auto type = element_type(onnx_number)) return std::string(row_of(*type).onnx);
    for (const auto& [number, name] : kOthers)
        if (number == onnx_number) return std::string(name);
    return fmt::format("data type {}", onnx_number);
}

std::optional<std::int32_t> onnx_number(std::string_view name) {
    for (const Row& row : kRows)
        if (row.onnx == name) return row.number;
    return std::nullopt;
}

std::string known_types() {
    std::string list;
    for (const Row& row : kRows) list.append(list.empty() ? "" : ", ").append(row.onnx);
    return list;
}

DType stored_as(ElementType type) { return row_of(type).stored; }

ElementType element_type(DType type) { return static_cast<ElementType>(type); }

int bits_of(ElementType type) { return row_of(type).bits; }

static_assert(static_cast<int>(ElementType::boolean) == static_cast<int>(DType::boolean));
static_assert(static_cast<int>(ElementType::i64) == static_cast<int>(DType::i64));

}  // namespace headrace::onnx
