#pragma once
#include <span>
#include <vector>

#include "doors/onnx/model/small_types.h"
#include "doors/onnx/reading/operators.h"
#include "ir/constant.h"

/// Numbers of 2, 4 or 8 bits that a model has as bytes.
namespace headrace::onnx {

/// Throws Refused for others.
void check_bits(std::int64_t bits, std::string_view what);

template <class T>
Operand known_elements(std::vector<std::int64_t> shape, std::span<const T> elements, ElementType type) {
    auto data = value_or_refuse(copy_constant(std::as_bytes(elements), "a matrix of few bits"));
    return known(Elements{.shape = std::move(shape), .data = std::move(data), .items = {}}, type);
}

/// [rows, columns] as the catalog has them: u4, two a byte, or u8.
Operand known_codes(std::int64_t rows, std::int64_t columns, std::int64_t bits,
                    const std::vector<std::uint8_t>& codes);
/// Rows of whole bytes, in this order: [order.size(), columns]. In their own order, 4 and 8 bits stay the
/// model's bytes.
Operand codes_of_rows(OpWriter& g, const Operand& packed, std::span<const std::int64_t> order,
                      std::int64_t columns, std::int64_t bits);
std::vector<std::int64_t> own_order(std::int64_t rows);

}  // namespace headrace::onnx
